import { expect, test } from 'vitest';
import { createBreaker } from '../breaker.ts';
import { createRetryBudget } from '../retry-budget.ts';
import { createEndpoints } from './endpoints.ts';
import { type Endpoint, placeOf } from './sites.ts';

function endpointsAt(first: readonly string[]) {
  let nowMs = 0;
  let current = first;
  let isRefused = false;
  const clock = { now: () => new Date(nowMs), monotonicMs: () => nowMs };
  const policy = { consecutiveFailures: 2, openMs: 1000, maxOpenMs: 4000, probeMs: 1000 };
  const addresses = {
    current: () => current,
    refresh: () => undefined,
    isRefused: () => isRefused,
    suspect: () => undefined,
  };
  const endpoints = createEndpoints({
    follow: () => addresses,
    newBreaker: () => createBreaker(clock, policy),
    retries: createRetryBudget(0, 1),
    mostUnderWay: 2,
  });
  endpoints.moveTo([placeOf('http://shop')]);
  const take = (failed?: Endpoint) => endpoints.acquire(failed)?.address ?? 'none';
  const use = (count: number, broken: ReadonlySet<string> = new Set()) =>
    Array.from({ length: count }, () => {
      const endpoint = endpoints.acquire();
      if (endpoint?.address !== undefined && broken.has(endpoint.address)) endpoint.breaker.failed();
      else endpoint?.breaker.succeeded();
      return endpoint?.address ?? 'none';
    });
  return {
    endpoints,
    take,
    use,
    become: (next: readonly string[]) => (current = next),
    refuse: () => (isRefused = true),
    sleep: (ms: number) => (nowMs += ms),
  };
}

test('addresses alternate', () => {
  expect(endpointsAt(['a', 'b', 'c']).use(7)).toEqual(['a', 'b', 'c', 'a', 'b', 'c', 'a']);
});

test('one that fails is left out, and asked again after a pause', () => {
  const { endpoints, use, sleep } = endpointsAt(['a', 'b', 'c']);
  const broken = new Set(['b']);
  use(6, broken);
  expect(endpoints.states()).toEqual(['closed', 'open', 'closed']);
  expect(use(6, broken)).not.toContain('b');
  sleep(1000);
  expect(use(6, broken).filter((address) => address === 'b')).toHaveLength(1);
  sleep(2000);
  use(3);
  expect(endpoints.states()).toEqual(['closed', 'closed', 'closed']);
});

test('a request that failed goes elsewhere, and back only where there is nobody else', () => {
  const { endpoints, take, use } = endpointsAt(['a', 'b']);
  const failed = endpoints.acquire();
  expect(failed?.address).toBe('a');
  failed?.breaker.failed();
  expect(take(failed)).toBe('b');
  expect(take(failed)).toBe('b');
  use(8, new Set(['b']));
  expect(take(failed)).toBe('a');
});

test('where all fail nobody is asked, until the first pause is over', () => {
  const { endpoints, use, sleep } = endpointsAt(['a', 'b']);
  const broken = new Set(['a', 'b']);
  expect(use(5, broken)).toEqual(['a', 'b', 'a', 'b', 'none']);
  expect(endpoints.retryAfterMs()).toBe(1000);
  sleep(1000);
  expect(use(3, broken)).toEqual(['a', 'b', 'none']);
});

test('an address that stays keeps what is known of it, one that comes starts anew', () => {
  const { endpoints, use, become } = endpointsAt(['a', 'b']);
  use(4, new Set(['a']));
  become(['a', 'c']);
  expect(endpoints.states()).toEqual(['open', 'closed']);
  expect(use(2)).toEqual(['c', 'c']);
  become([]);
  expect(endpoints.states()).toEqual(['closed']);
  expect(endpoints.acquire()?.address).toBeUndefined();
});

test('one can be spared while another takes requests, and the last cannot', () => {
  const { endpoints, use, sleep } = endpointsAt(['a', 'b']);
  const [a, b] = [endpoints.acquire(), endpoints.acquire()];
  if (a === undefined || b === undefined) throw new Error('One takes no request');
  expect([endpoints.canSpare(a), endpoints.canSpare(b)]).toEqual([true, true]);
  use(4, new Set(['a']));
  expect([endpoints.canSpare(a), endpoints.canSpare(b)]).toEqual([true, false]);
  // Half open: nobody knows yet whether it does.
  sleep(1000);
  expect(endpoints.canSpare(b)).toBe(false);
  const alone = endpointsAt([]).endpoints;
  const only = alone.acquire();
  expect(only !== undefined && alone.canSpare(only)).toBe(false);
});

test('one that has as many requests as it may have is left out until one is over', () => {
  const { endpoints, take } = endpointsAt(['a', 'b']);
  const first = endpoints.acquire();
  if (first !== undefined) first.underWay = 2;
  expect([take(), take()]).toEqual(['b', 'b']);
  const other = endpoints.acquire();
  if (other !== undefined) other.underWay = 2;
  expect(endpoints.areFull()).toBe(true);
  expect(take()).toBe('none');
  if (first !== undefined) first.underWay = 1;
  expect(take()).toBe('a');
});

test('where no connection may be made, no request is taken', () => {
  const { take, refuse } = endpointsAt(['a', 'b']);
  refuse();
  expect(() => take()).toThrow(expect.objectContaining({ code: 'ADDRESS_REFUSED' }));
});

/** Places with an address each; one whose host begins with `refused` may not be called. */
function placesAt(urls: readonly string[], random = () => 0) {
  const clock = { now: () => new Date(0), monotonicMs: () => 0 };
  const endpoints = createEndpoints({
    follow: (hostname) => ({
      current: () => NONE,
      // Such a name has no answer.
      refresh: () => (hostname.startsWith('slow') ? new Promise(() => undefined) : undefined),
      isRefused: () => hostname.startsWith('refused'),
      suspect: () => undefined,
    }),
    newBreaker: () => createBreaker(clock, { consecutiveFailures: 1, openMs: 1000, maxOpenMs: 4000, probeMs: 1000 }),
    retries: createRetryBudget(0, 1),
    mostUnderWay: 10,
    random,
  });
  endpoints.moveTo(urls.map((url) => placeOf(url)));
  const take = (count: number) =>
    Array.from({ length: count }, () => {
      const { origin, basePath } = endpoints.acquire() ?? { origin: 'none', basePath: '' };
      return origin + basePath;
    });
  return { endpoints, take };
}

const NONE: readonly string[] = [];

test('places take turns, each with its own path', () => {
  const { take } = placesAt(['http://a', 'http://b/api/']);
  expect(take(4)).toEqual(['http://a', 'http://b/api', 'http://a', 'http://b/api']);
});

test('the less busy of two gets a request', () => {
  const { endpoints, take } = placesAt(['http://a', 'http://b', 'http://c'], () => 0.99);
  const first = endpoints.acquire();
  if (first !== undefined) first.underWay = 5;
  expect(take(6)).toEqual(['http://b', 'http://c', 'http://c', 'http://b', 'http://c', 'http://c']);
});

test('what ends or is not well gets requests only where nobody else takes them', () => {
  const { endpoints, take } = placesAt(['http://a', 'http://b']);
  endpoints.moveTo([placeOf('http://a', false), placeOf('http://b')]);
  expect(take(2)).toEqual(['http://b', 'http://b']);
  endpoints.acquire()?.breaker.failed();
  expect(take(1)).toEqual(['http://a']);
  endpoints.moveTo([placeOf('http://a', false), placeOf('http://b', false)]);
  expect(take(2)).toEqual(['http://a', 'http://a']);
});

test('a place that stays keeps what is known of it, however often it is registered', () => {
  const { endpoints, take } = placesAt(['http://a', 'http://a']);
  expect(endpoints.states()).toEqual(['closed']);
  endpoints.acquire()?.breaker.failed();
  endpoints.moveTo([placeOf('http://a', false), placeOf('http://b'), placeOf('http://a')]);
  expect(endpoints.states()).toEqual(['open', 'closed']);
  expect(take(2)).toEqual(['http://b', 'http://b']);
  endpoints.moveTo([placeOf('http://c')]);
  expect(endpoints.states()).toEqual(['closed']);
});

test('a place where no connection may be made is left out, and all of them are refused', () => {
  const { endpoints, take } = placesAt(['http://refused-a', 'http://b']);
  expect(take(2)).toEqual(['http://b', 'http://b']);
  const only = endpoints.acquire();
  // Nobody could be called in its stead.
  expect(only !== undefined && endpoints.canSpare(only)).toBe(false);
  only?.breaker.failed();
  expect(endpoints.states()).toEqual(['open']);
  expect(endpoints.retryAfterMs()).toBe(1000);
  endpoints.moveTo([placeOf('http://refused-a'), placeOf('http://refused-b')]);
  expect(() => take(1)).toThrow(expect.objectContaining({ code: 'ADDRESS_REFUSED' }));
});

test('a place whose name has no answer yet is left out, and holds nobody up', () => {
  const { endpoints, take } = placesAt(['http://slow-a', 'http://b', 'http://10.0.0.7']);
  expect(endpoints.refresh()).toBeUndefined();
  expect(take(4)).toEqual(['http://b', 'http://10.0.0.7', 'http://b', 'http://10.0.0.7']);
  endpoints.moveTo([placeOf('http://slow-a'), placeOf('http://slow-b')]);
  expect(endpoints.refresh()).toBeInstanceOf(Promise);
  endpoints.moveTo([placeOf('http://slow-a')]);
  expect(endpoints.refresh()).toBeInstanceOf(Promise);
});
