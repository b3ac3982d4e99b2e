import { expect, test } from 'vitest';
import { type Endpoint, placeOf } from './endpoint.ts';
import { countsOf, oneAddress, testEndpoints } from './testing/test-endpoints.ts';

function endpointsAt(first: readonly string[]) {
  let current = first;
  let isRefused = false;
  const follow = () => ({ ...oneAddress, current: () => current, isRefused: () => isRefused });
  const { endpoints, sleep } = testEndpoints({ follow });
  endpoints.moveTo([placeOf('http://shop')]);
  const look = () => {
    sleep(100);
    void endpoints.refresh();
  };
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
    become: (next: readonly string[]) => {
      current = next;
      look();
    },
    refuse: () => {
      isRefused = true;
      look();
    },
    sleep,
  };
}

test('addresses get as many requests as each other', () => {
  const counts = countsOf(endpointsAt(['a', 'b', 'c']).use(3000));
  for (const address of ['a', 'b', 'c']) expect(Math.abs((counts[address] ?? 0) - 1000)).toBeLessThan(100);
});

test('one that fails is left out, and asked again after a pause', () => {
  const { endpoints, use, sleep } = endpointsAt(['a', 'b', 'c']);
  const broken = new Set(['b']);
  use(20, broken);
  expect(endpoints.states()).toEqual(['closed', 'open', 'closed']);
  expect(use(20, broken)).not.toContain('b');
  sleep(1000);
  expect(use(20, broken).filter((address) => address === 'b')).toHaveLength(1);
  sleep(2000);
  use(20);
  expect(endpoints.states()).toEqual(['closed', 'closed', 'closed']);
});

test('a request that failed goes elsewhere, and back only where there is nobody else', () => {
  const { endpoints, take, use } = endpointsAt(['a', 'b']);
  const failed = endpoints.acquire();
  const other = failed?.address === 'a' ? 'b' : 'a';
  failed?.breaker.failed();
  expect([1, 2, 3, 4].map(() => take(failed))).toEqual([other, other, other, other]);
  use(20, new Set([other]));
  expect(take(failed)).toBe(failed?.address);
});

test('where all fail nobody is asked, until the first pause is over', () => {
  const { endpoints, use, sleep } = endpointsAt(['a', 'b']);
  const broken = new Set(['a', 'b']);
  expect(countsOf(use(5, broken))).toEqual({ a: 2, b: 2, none: 1 });
  expect(endpoints.retryAfterMs()).toBe(1000);
  sleep(1000);
  expect(countsOf(use(3, broken))).toEqual({ a: 1, b: 1, none: 1 });
});

test('an address that stays keeps what is known of it, one that comes starts anew', () => {
  const { endpoints, use, become } = endpointsAt(['a', 'b']);
  use(20, new Set(['a']));
  become(['a', 'c']);
  expect(endpoints.states()).toEqual(['open', 'closed']);
  expect(use(2)).toEqual(['c', 'c']);
  become([]);
  expect(endpoints.states()).toEqual(['closed']);
  expect(endpoints.acquire()?.address).toBeUndefined();
});

test('one can be spared while another takes requests, and the last cannot', () => {
  const { endpoints, use, sleep } = endpointsAt(['a', 'b']);
  const a = endpoints.acquire();
  const b = endpoints.acquire(a);
  if (a === undefined || b === undefined) throw new Error('One takes no request');
  expect([endpoints.canSpare(a), endpoints.canSpare(b)]).toEqual([true, true]);
  use(20, new Set([a.address ?? '']));
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
  const other = endpoints.acquire();
  expect(other).not.toBe(first);
  expect([take(), take()]).toEqual([other?.address, other?.address]);
  if (other !== undefined) other.underWay = 2;
  expect(endpoints.areFull()).toBe(true);
  expect(take()).toBe('none');
  if (first !== undefined) first.underWay = 1;
  expect(take()).toBe(first?.address);
});

test('where no connection may be made, no request is taken', () => {
  const { take, refuse } = endpointsAt(['a', 'b']);
  refuse();
  expect(() => take()).toThrow(expect.objectContaining({ code: 'ADDRESS_REFUSED' }));
});
