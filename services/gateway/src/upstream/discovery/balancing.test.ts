import { expect, test } from 'vitest';
import type { Addresses } from './addresses.ts';
import { type Endpoint, type Place, placeOf } from './endpoint.ts';
import type { EndpointsOptions } from './endpoints.ts';
import { countsOf, oneAddress, testEndpoints } from './testing/test-endpoints.ts';

const COUNT = 20_000;

const nameOf = (endpoint: Endpoint | undefined) => endpoint?.origin.slice('http://'.length) ?? 'none';

/** Instances by name, each at a host of that name. */
function instancesAt(said: Readonly<Record<string, Partial<Place>>>, options: Partial<EndpointsOptions> = {}) {
  const { endpoints, sleep, now } = testEndpoints({ mostUnderWay: 100, ...options });
  const move = (next: typeof said) =>
    endpoints.moveTo(Object.entries(next).map(([name, facts]) => placeOf(`http://${name}`, facts)));
  move(said);
  /** Of that many requests, the share that each got. */
  const shares = (atOnce = 1) => {
    const underWay: Endpoint[] = [];
    const taken = Array.from({ length: COUNT }, () => {
      const endpoint = endpoints.acquire();
      if (endpoint !== undefined) underWay.push(endpoint);
      if (endpoint !== undefined) endpoint.underWay += 1;
      const oldest = underWay.length < atOnce ? undefined : underWay.shift();
      if (oldest !== undefined) oldest.underWay -= 1;
      return nameOf(endpoint);
    });
    for (const endpoint of underWay) endpoint.underWay -= 1;
    return Object.fromEntries(Object.entries(countsOf(taken)).map(([name, count]) => [name, count / COUNT]));
  };
  const names = () => [...new Set(Array.from({ length: 200 }, () => nameOf(endpoints.acquire())))].toSorted();
  /** Fails all requests until none goes there. */
  const breakAll = (broken: readonly string[]) => {
    for (let count = 0; count < 100; count += 1) {
      const endpoint = endpoints.acquire();
      if (broken.includes(nameOf(endpoint))) endpoint?.breaker.failed();
    }
  };
  return { endpoints, sleep, now, move, shares, names, breakAll };
}

/** By 0.01, or 0.04. */
const about = (share: number) => expect.closeTo(share, 1.7);
const roughly = (share: number) => expect.closeTo(share, 1.1);

test.each([
  [1, about],
  // The less busy of two is not always the one whose turn it would be.
  [4, roughly],
  [40, about],
])('instances get requests in proportion to their weights, %i at once', (atOnce, share) => {
  const { shares } = instancesAt({ a: { weight: 50 }, b: { weight: 150 }, c: {} });
  expect(shares(atOnce)).toEqual({ a: share(1 / 6), b: share(1 / 2), c: share(1 / 3) });
});

test('one that is not well takes no requests in the place of the only one that is', () => {
  const { endpoints } = instancesAt({ well: {}, near: { isServing: false }, other: { isServing: false } });
  const well = endpoints.acquire();
  if (well === undefined) throw new Error('Nobody takes a request');
  expect(endpoints.canSpare(well)).toBe(false);
  well.breaker.failed();
  well.breaker.failed();
  const ailing = endpoints.acquire();
  expect(nameOf(ailing)).not.toBe('well');
  expect(ailing !== undefined && endpoints.canSpare(ailing)).toBe(true);
});

/** Names that begin with `bad` may not be called, and those that end with `slow` have no answer yet. */
const followBad = (hostname: string): Addresses => ({
  ...oneAddress,
  isRefused: () => hostname.startsWith('bad'),
  refresh: () => (hostname.endsWith('slow') ? new Promise<void>(() => undefined) : undefined),
});

test('a service is refused only where all of its addresses are', () => {
  const { endpoints, move } = instancesAt({ bad: {}, slow: {} }, { follow: followBad });
  void endpoints.refresh();
  // Nobody takes it yet.
  expect(endpoints.acquire()).toBeUndefined();
  // It was refused when it was last looked up, and may lead elsewhere now.
  move({ bad: {}, 'bad-slow': {} });
  void endpoints.refresh();
  expect(endpoints.acquire()).toBeUndefined();
  move({ bad: {}, 'bad-too': {} });
  expect(() => endpoints.acquire()).toThrow(expect.objectContaining({ code: 'ADDRESS_REFUSED' }));
});

test('one that answers slowly gets less than its share', () => {
  const { endpoints, shares } = instancesAt({ a: {}, b: {} });
  const slow = endpoints.acquire();
  if (slow !== undefined) slow.underWay = 5;
  expect(Math.min(...Object.values(shares()))).toBeCloseTo(1 / 4, 1);
});

test('those that fail leave their share to the others by their weights', () => {
  const { shares, breakAll } = instancesAt({ a: { weight: 1000 }, b: { weight: 150 }, c: { weight: 50 } });
  breakAll(['a']);
  expect(shares()).toEqual({ b: about(3 / 4), c: about(1 / 4) });
});

const THREE = ['1', '2', '3'];
const follow = (hostname: string) => (hostname === 'a' ? { ...oneAddress, current: () => THREE } : oneAddress);

test('the addresses of a name share its weight', () => {
  expect(instancesAt({ a: {}, b: {} }, { follow }).shares()).toEqual({ a: about(1 / 2), b: about(1 / 2) });
});

const zones = { here: { zone: 'z1' }, also: { zone: 'z1' }, there: { zone: 'z2' }, unknown: {} };

test('the own zone gets requests first, others where none of it accepts, and the ailing ones last', () => {
  const { names, breakAll } = instancesAt({ ...zones, ill: { zone: 'z1', isServing: false } }, { zone: 'z1' });
  expect(names()).toEqual(['also', 'here']);
  breakAll(['here']);
  expect(names()).toEqual(['also']);
  breakAll(['also']);
  expect(names()).toEqual(['there', 'unknown']);
  breakAll(['there', 'unknown']);
  expect(names()).toEqual(['ill']);
});

test('zones do not matter to a gateway that has none, nor where none is its own', () => {
  const all = ['also', 'here', 'there', 'unknown'];
  expect(instancesAt(zones).names()).toEqual(all);
  expect(instancesAt(zones, { zone: 'z3' }).names()).toEqual(all);
});

test('what failed in the own zone is tried in another one, and then in the own one again', () => {
  const { endpoints, breakAll } = instancesAt(zones, { zone: 'z1' });
  const failed = endpoints.acquire();
  for (let count = 0; count < 20; count += 1) {
    expect(['there', 'unknown']).toContain(nameOf(endpoints.acquire(failed)));
  }
  breakAll(['here', 'also']);
  breakAll(['there', 'unknown']);
  expect(nameOf(endpoints.acquire(failed))).toBe('none');
  expect(instancesAt({ ...zones, unknown: { zone: 'z1' } }, { zone: 'z1' }).names()).toContain('unknown');
});

const SLOW = { slowStartMs: 30_000 };

test('one that joins begins with a tenth of its weight, and has all of it in the end', () => {
  const { shares, sleep, now, move } = instancesAt({ a: {} }, SLOW);
  sleep(60_000);
  move({ a: {}, b: { joinedAtMs: now() } });
  expect(shares()).toEqual({ a: about(10 / 11), b: about(1 / 11) });
  sleep(15_000);
  expect(shares()).toEqual({ a: about(100 / 155), b: about(55 / 155) });
  sleep(15_000);
  expect(shares()).toEqual({ a: about(1 / 2), b: about(1 / 2) });
});

test('those that join where nobody serves share all requests', () => {
  const { shares, move } = instancesAt({ a: { isServing: false } }, SLOW);
  move({ a: { isServing: false }, b: { joinedAtMs: 0 }, c: { joinedAtMs: 0 } });
  expect(shares()).toEqual({ b: about(1 / 2), c: about(1 / 2) });
});

test('one that answers again after its breaker was open starts slowly', () => {
  const { endpoints, shares, sleep, breakAll } = instancesAt({ a: {}, b: {} }, SLOW);
  breakAll(['b']);
  sleep(2000);
  let probed: Endpoint | undefined;
  while (nameOf(probed) !== 'b') probed = endpoints.acquire();
  probed?.breaker.succeeded();
  sleep(1000);
  expect(shares()['b']).toBeCloseTo(0.13 / 1.13, 1.7);
  sleep(30_000);
  expect(shares()['b']).toBeCloseTo(1 / 2, 1.7);
});

test('a new address of a name starts slowly, those that were found first do not', () => {
  let current: readonly string[] = ['1', '2'];
  const { endpoints, sleep } = testEndpoints({ follow: () => ({ ...oneAddress, current: () => current }), ...SLOW });
  sleep(60_000);
  endpoints.moveTo([placeOf('http://shop')]);
  current = ['1', '2', '3'];
  void endpoints.refresh();
  const found = countsOf(Array.from({ length: COUNT }, () => endpoints.acquire()?.address ?? 'none'));
  expect((found['3'] ?? 0) / COUNT).toBeCloseTo(0.1 / 2.1, 1.7);
});
