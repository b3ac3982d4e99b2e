import type { LookupAddress } from 'node:dns';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLookups, isOfLookup } from './lookups.ts';

const ADDRESSES = [{ address: '10.0.0.1', family: 4 }];

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Lookups that end when a test says so. */
function heldLookups() {
  const names: string[] = [];
  const open = new Map<string, PromiseWithResolvers<readonly LookupAddress[]>>();
  const lookups = createLookups((hostname) => {
    names.push(hostname);
    const lookup = Promise.withResolvers<readonly LookupAddress[]>();
    open.set(hostname, lookup);
    return lookup.promise;
  });
  return {
    ...lookups,
    names,
    answer: (hostname: string) => open.get(hostname)?.resolve(ADDRESSES),
    fail: (hostname: string) => open.get(hostname)?.reject(new Error(`getaddrinfo ENOTFOUND ${hostname}`)),
  };
}

const failed = (lookup: Promise<unknown>): Promise<unknown> => lookup.catch((error: unknown) => error);

/** As a connection asks. */
function connecting(waitMs: number, { within }: ReturnType<typeof heldLookups>): Promise<unknown> {
  return new Promise((resolve) => {
    within(waitMs)('shop', { all: true }, (error, addresses) => resolve(error ?? addresses));
  });
}

test('all who need a name at once share one lookup, connections too, and those of the next second its answer', async () => {
  const lookups = heldLookups();
  const { resolve, names, answer } = lookups;
  const asking = [resolve('shop'), resolve('shop'), connecting(1000, lookups)];
  answer('shop');
  expect(await Promise.all(asking)).toEqual([ADDRESSES, ADDRESSES, ADDRESSES]);
  await vi.advanceTimersByTimeAsync(999);
  expect(await connecting(1000, lookups)).toEqual(ADDRESSES);
  expect(names).toEqual(['shop']);
  await vi.advanceTimersByTimeAsync(1);
  void resolve('shop');
  expect(names).toEqual(['shop', 'shop']);
});

test('what failed is asked again at once', async () => {
  const { resolve, names, fail, answer } = heldLookups();
  const first = failed(resolve('shop'));
  fail('shop');
  expect(await first).toMatchObject({ message: 'getaddrinfo ENOTFOUND shop' });
  const second = resolve('shop');
  answer('shop');
  expect(await second).toEqual(ADDRESSES);
  expect(names).toEqual(['shop', 'shop']);
});

test('one that hangs is waited for two seconds in all, fails at once for whoever comes later, and takes no second thread', async () => {
  const lookups = heldLookups();
  const { resolve, names, answer } = lookups;
  const waiting = failed(resolve('shop'));
  await vi.advanceTimersByTimeAsync(1500);
  const joined = failed(resolve('shop'));
  await vi.advanceTimersByTimeAsync(499);
  expect(await Promise.race([waiting, joined, Promise.resolve('nothing yet')])).toBe('nothing yet');
  await vi.advanceTimersByTimeAsync(1);
  for (const error of [await waiting, await joined, await failed(resolve('shop')), await connecting(1000, lookups)]) {
    expect(isOfLookup(error)).toBe(true);
  }
  await vi.advanceTimersByTimeAsync(60_000);
  expect(isOfLookup(await failed(resolve('shop')))).toBe(true);
  expect(names).toEqual(['shop']);
  // What came so late may be true no longer.
  answer('shop');
  await vi.advanceTimersByTimeAsync(0);
  const again = resolve('shop');
  answer('shop');
  expect(await again).toEqual(ADDRESSES);
});

test('the last answer serves for half a minute where no newer one is to be had', async () => {
  const lookups = heldLookups();
  const { resolve, answer } = lookups;
  const first = resolve('shop');
  answer('shop');
  await first;
  await vi.advanceTimersByTimeAsync(2000);
  const connection = connecting(300, lookups);
  await vi.advanceTimersByTimeAsync(300);
  expect(await connection).toEqual(ADDRESSES);
  await vi.advanceTimersByTimeAsync(27_000);
  expect(await resolve('shop')).toEqual(ADDRESSES);
  await vi.advanceTimersByTimeAsync(1000);
  expect(isOfLookup(await failed(resolve('shop')))).toBe(true);
});

test('the last answer does not serve for a name that has gone', async () => {
  const { resolve, answer, fail } = heldLookups();
  const first = resolve('shop');
  answer('shop');
  await first;
  await vi.advanceTimersByTimeAsync(2000);
  const second = failed(resolve('shop'));
  fail('shop');
  expect(await second).toMatchObject({ message: 'getaddrinfo ENOTFOUND shop' });
  // Nor where the name server is slow after it has said so.
  const third = failed(resolve('shop'));
  await vi.advanceTimersByTimeAsync(2000);
  expect(isOfLookup(await third)).toBe(true);
});

test('a connection waits for less, and leaves the lookup to the others', async () => {
  const lookups = heldLookups();
  const { resolve, answer } = lookups;
  const waiting = resolve('shop');
  const connection = connecting(300, lookups);
  await vi.advanceTimersByTimeAsync(300);
  expect(isOfLookup(await connection)).toBe(true);
  answer('shop');
  expect(await waiting).toEqual(ADDRESSES);
});

test('many names that hang leave half of the threads to others, and get theirs back when they answer', async () => {
  const { resolve, names, answer, fail } = heldLookups();
  const dead = ['a', 'b', 'c', 'd', 'e', 'f'];
  const first = dead.map((name) => failed(resolve(name)));
  await vi.advanceTimersByTimeAsync(2000);
  for (const name of dead) fail(name);
  await Promise.all(first);
  await vi.advanceTimersByTimeAsync(0);
  names.length = 0;
  const second = dead.map((name) => failed(resolve(name)));
  expect(names).toEqual(['a', 'b', 'c']);
  expect(isOfLookup(await second[3])).toBe(true);
  const other = resolve('shop');
  answer('shop');
  expect(await other).toEqual(ADDRESSES);
  answer('a');
  await vi.advanceTimersByTimeAsync(0);
  void failed(resolve('e'));
  void failed(resolve('f'));
  expect(names).toEqual(['a', 'b', 'c', 'shop', 'e']);
});

test('what finds no thread waits in line, and is not begun when nobody waits for it any more', async () => {
  const { resolve, names, answer } = heldLookups();
  const dead = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => failed(resolve(name)));
  const waiting = failed(resolve('shop'));
  await vi.advanceTimersByTimeAsync(1500);
  const served = resolve('cart');
  expect(names).toHaveLength(6);
  await vi.advanceTimersByTimeAsync(500);
  expect(isOfLookup(await waiting)).toBe(true);
  await Promise.all(dead);
  answer('a');
  await vi.advanceTimersByTimeAsync(0);
  expect(names.slice(6)).toEqual(['cart']);
  answer('cart');
  expect(await served).toEqual(ADDRESSES);
  // It was not its name that did not answer.
  const again = resolve('shop');
  answer('shop');
  expect(await again).toEqual(ADDRESSES);
});
