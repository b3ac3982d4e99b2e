import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { placeOf } from './endpoint.ts';
import { oneAddress, testEndpoints } from './testing/test-endpoints.ts';

/** Names with one server each. */
const follow = (hostname: string) => ({
  ...oneAddress,
  // Such a name has no answer.
  refresh: () => (hostname.startsWith('slow') ? new Promise<void>(() => undefined) : undefined),
  // Such a one may not be called.
  isRefused: () => hostname.startsWith('refused'),
});

function placesAt(urls: readonly string[]) {
  const { endpoints } = testEndpoints({ follow, mostUnderWay: 10 });
  endpoints.moveTo(urls.map((url) => placeOf(url)));
  /** Where so many requests go. */
  const taken = (count = 20) =>
    new Set(
      Array.from({ length: count }, () => {
        const { origin, basePath } = endpoints.acquire() ?? { origin: 'none', basePath: '' };
        return origin + basePath;
      }),
    );
  const fail = () => {
    for (let count = 0; count < 2; count += 1) endpoints.acquire()?.breaker.failed();
  };
  return { endpoints, taken, fail };
}

const ailing = { isServing: false };

test('each place has its own path', () => {
  expect(placesAt(['http://a', 'http://b/api/']).taken()).toEqual(new Set(['http://a', 'http://b/api']));
});

test('what ends or is not well gets requests only where nobody else takes them', () => {
  const { endpoints, taken, fail } = placesAt([]);
  endpoints.moveTo([placeOf('http://a', ailing), placeOf('http://b')]);
  expect(taken()).toEqual(new Set(['http://b']));
  fail();
  expect(taken()).toEqual(new Set(['http://a']));
  endpoints.moveTo([placeOf('http://a', ailing), placeOf('http://b', ailing)]);
  expect(taken()).toEqual(new Set(['http://a']));
});

test('a place that stays keeps what is known of it, however often it is registered', () => {
  const { endpoints, taken, fail } = placesAt(['http://a', 'http://a']);
  expect(endpoints.states()).toEqual(['closed']);
  fail();
  endpoints.moveTo([placeOf('http://a', ailing), placeOf('http://b'), placeOf('http://a')]);
  expect(endpoints.states()).toEqual(['open', 'closed']);
  expect(taken()).toEqual(new Set(['http://b']));
  endpoints.moveTo([placeOf('http://c')]);
  expect(endpoints.states()).toEqual(['closed']);
});

test('a place where no connection may be made is left out, and all of them are refused', () => {
  const { endpoints, taken, fail } = placesAt(['http://refused-a', 'http://b']);
  expect(taken()).toEqual(new Set(['http://b']));
  const only = endpoints.acquire();
  // Nobody could be called in its stead.
  expect(only !== undefined && endpoints.canSpare(only)).toBe(false);
  fail();
  expect(endpoints.states()).toEqual(['open']);
  expect(endpoints.retryAfterMs()).toBe(1000);
  endpoints.moveTo([placeOf('http://refused-a'), placeOf('http://refused-b')]);
  expect(() => taken(1)).toThrow(expect.objectContaining({ code: 'ADDRESS_REFUSED' }));
});

test('a thousand names are not asked again for each request', () => {
  let lookups = 0;
  const refresh = () => {
    lookups += 1;
    return undefined;
  };
  const { endpoints, sleep } = testEndpoints({ follow: () => ({ ...oneAddress, refresh }) });
  endpoints.moveTo(Array.from({ length: 1000 }, (_, index) => placeOf(`http://shop-${index}`)));
  for (let count = 0; count < 100; count += 1) void endpoints.refresh();
  expect(lookups).toBe(1000);
  sleep(100);
  void endpoints.refresh();
  expect(lookups).toBe(2000);
});

test('the first of several names that has an answer ends the waiting', async () => {
  const answer = Promise.withResolvers<void>();
  const never = new Promise<void>(() => undefined);
  const follow = (hostname: string) => ({
    ...oneAddress,
    refresh: () => (hostname === 'a' ? answer.promise : never),
  });
  const { endpoints } = testEndpoints({ follow });
  endpoints.moveTo([placeOf('http://a'), placeOf('http://b')]);
  const waiting = endpoints.refresh();
  expect(endpoints.refresh()).toBe(waiting);
  answer.resolve();
  await waiting;
  expect(endpoints.refresh()).toBeUndefined();
  expect(endpoints.acquire()?.origin).toBe('http://a');
});

test('a place whose name has no answer yet is left out, and holds nobody up', () => {
  const { endpoints, taken } = placesAt(['http://slow-a', 'http://b', 'http://10.0.0.7']);
  expect(endpoints.refresh()).toBeUndefined();
  expect(taken()).toEqual(new Set(['http://b', 'http://10.0.0.7']));
  endpoints.moveTo([placeOf('http://slow-a'), placeOf('http://slow-b')]);
  expect(endpoints.refresh()).toBeInstanceOf(Promise);
  endpoints.moveTo([placeOf('http://slow-a')]);
  expect(endpoints.refresh()).toBeInstanceOf(Promise);
});

/** Names with answers that take as long as the test wants, of which those of `bad` are refused. */
function lookups() {
  const answers = new Map<string, PromiseWithResolvers<void>>();
  const answered = new Set<string>();
  const follow = (hostname: string) => ({
    ...oneAddress,
    refresh: () => (answered.has(hostname) ? undefined : answers.get(hostname)?.promise),
    isRefused: () => hostname.startsWith('169.') || (answered.has(hostname) && hostname.startsWith('bad')),
  });
  const { endpoints, sleep } = testEndpoints({ follow });
  const moveTo = (...hosts: readonly string[]) => {
    for (const host of hosts) answers.set(host, Promise.withResolvers());
    endpoints.moveTo(hosts.map((host) => placeOf(`http://${host}`)));
  };
  const answer = async (host: string) => {
    answered.add(host);
    answers.get(host)?.resolve();
    await setImmediate();
  };
  return { endpoints, sleep, moveTo, answer };
}

test('who waits for names waits for one that may be called', async () => {
  const { endpoints, moveTo, answer } = lookups();
  moveTo('bad', 'good', 'slow');
  const waiting = endpoints.refresh();
  await answer('bad');
  expect(endpoints.refresh()).toBe(waiting);
  expect(endpoints.acquire()).toBeUndefined();
  await answer('good');
  await waiting;
  expect(endpoints.refresh()).toBeUndefined();
  expect(endpoints.acquire()?.origin).toBe('http://good');
});

test('a name is waited for where all else that is known may not be called', async () => {
  const { endpoints, sleep, moveTo, answer } = lookups();
  moveTo('169.254.169.254', 'bad', 'good');
  await answer('bad');
  expect(endpoints.refresh()).toBeInstanceOf(Promise);
  sleep(100);
  const waiting = endpoints.refresh();
  expect(waiting).toBeInstanceOf(Promise);
  await answer('good');
  await waiting;
  expect(endpoints.acquire()?.origin).toBe('http://good');
});

test('the waiting ends once all names are refused, and so is the request', async () => {
  const { endpoints, sleep, moveTo, answer } = lookups();
  moveTo('bad-a', 'bad-b');
  const waiting = endpoints.refresh();
  await answer('bad-a');
  await answer('bad-b');
  await waiting;
  expect(() => endpoints.acquire()).toThrow(expect.objectContaining({ code: 'ADDRESS_REFUSED' }));
  sleep(100);
  expect(endpoints.refresh()).toBeUndefined();
});
