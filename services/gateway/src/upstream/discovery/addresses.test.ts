import type { LookupAddress } from 'node:dns';
import { addressRules } from '@rollcall/platform/outbound/address-rules.ts';
import { createLookups } from '@rollcall/platform/outbound/lookups.ts';
import { expect, test, vi } from 'vitest';
import { type Addresses, followAddresses } from './addresses.ts';

const v4 = (...hosts: readonly number[]): readonly LookupAddress[] =>
  hosts.map((host) => ({ address: `10.0.0.${host}`, family: 4 }));
const v6: LookupAddress = { address: 'fd00::1', family: 6 };

function namesAt(hostname = 'shop') {
  let nowMs = 0;
  let lookups = 0;
  let answer: readonly LookupAddress[] | Error = [];
  const resolve = async () => {
    lookups += 1;
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const addresses = followAddresses(hostname, {
    resolve,
    mayConnect: addressRules.cluster,
    clock: { now: () => new Date(nowMs), monotonicMs: () => nowMs },
  });
  return {
    addresses,
    lookups: () => lookups,
    become: (next: typeof answer) => (answer = next),
    sleep: (ms: number) => (nowMs += ms),
  };
}

/** What a request would go by. */
async function used(addresses: Addresses): Promise<readonly string[]> {
  await addresses.refresh();
  return addresses.current();
}

test.each([
  ['one is as good as the name', v4(1), []],
  ['the same one twice, too', v4(1, 1), []],
  ['several, in an order that stays', v4(3, 1, 2), ['10.0.0.1', '10.0.0.2', '10.0.0.3']],
  ['the family that is named first', [...v4(2, 1), v6], ['10.0.0.1', '10.0.0.2']],
  ['one of each family are two ways to one server', [v6, ...v4(1)], []],
])('%s', async (_, answer, expected) => {
  const { addresses, become } = namesAt();
  become(answer);
  expect(await used(addresses)).toEqual(expected);
});

test.each(['10.0.0.1', '[fd00::1]'])('%s is not looked up', async (hostname) => {
  const { addresses, lookups, sleep } = namesAt(hostname);
  expect(addresses.refresh()).toBeUndefined();
  addresses.suspect();
  sleep(60_000);
  expect(addresses.refresh()).toBeUndefined();
  expect(lookups()).toBe(0);
});

test('the first request waits, those of the next seconds ask nobody, and then one asks by the way', async () => {
  const { addresses, become, lookups, sleep } = namesAt();
  become(v4(1, 2));
  const first = addresses.refresh();
  expect(addresses.refresh()).toBe(first);
  await first;
  sleep(4999);
  expect(addresses.refresh()).toBeUndefined();
  expect(lookups()).toBe(1);
  sleep(1);
  become(v4(2, 3));
  expect(addresses.refresh()).toBeUndefined();
  expect(addresses.current()).toEqual(['10.0.0.1', '10.0.0.2']);
  await new Promise(setImmediate);
  expect(addresses.current()).toEqual(['10.0.0.2', '10.0.0.3']);
  expect(lookups()).toBe(2);
});

test('nothing goes to addresses that were not asked for in a long time', async () => {
  const { addresses, become, sleep } = namesAt();
  become(v4(1, 2));
  await addresses.refresh();
  become(v4(3, 4));
  sleep(30_000);
  expect(await used(addresses)).toEqual(['10.0.0.3', '10.0.0.4']);
});

test('suspect ones are asked for again, but not all the time', async () => {
  const { addresses, become, lookups, sleep } = namesAt();
  become(v4(1, 2));
  await addresses.refresh();
  become(v4(3, 4));
  addresses.suspect();
  expect(addresses.refresh()).toBeUndefined();
  sleep(1000);
  expect(await used(addresses)).toEqual(['10.0.0.3', '10.0.0.4']);
  expect(lookups()).toBe(2);
});

test('what cannot be looked up stays as it was; an equal answer is the same array', async () => {
  const { addresses, become, sleep } = namesAt();
  become(v4(1, 2));
  const before = await used(addresses);
  become(new Error('ESERVFAIL'));
  sleep(30_000);
  expect(await used(addresses)).toBe(before);
  become(v4(2, 1));
  sleep(30_000);
  expect(await used(addresses)).toBe(before);
});

test('a lookup that never ends is waited for some seconds, and the addresses stay', async () => {
  vi.useFakeTimers();
  try {
    const clock = { now: () => new Date(), monotonicMs: () => performance.now() };
    const answers = [Promise.resolve(v4(1, 2)), new Promise<never>(() => undefined)];
    const addresses = followAddresses('shop', {
      resolve: createLookups(async () => answers.shift() ?? []).resolve,
      mayConnect: addressRules.cluster,
      clock,
    });
    const before = await used(addresses);
    vi.advanceTimersByTime(30_000);
    let isOver = false;
    const waiting = addresses.refresh()?.then(() => {
      isOver = true;
      return isOver;
    });
    await vi.advanceTimersByTimeAsync(1999);
    expect(isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(await waiting).toBe(true);
    expect(addresses.current()).toBe(before);
    expect(addresses.refresh()).toBeUndefined();
  } finally {
    vi.useRealTimers();
  }
});

test.each(['127.0.0.1', '[::1]', '169.254.169.254', '[fe80::1]', '[::ffff:127.0.0.1]', '0.0.0.0', '100.100.100.200'])(
  '%s is no address of a service',
  async (hostname) => {
    const { addresses, lookups } = namesAt(hostname);
    await used(addresses);
    expect([addresses.isRefused(), lookups()]).toEqual([true, 0]);
  },
);

test.each(['10.0.0.1', '[fd00::1]', '192.0.1.1'])('%s may be one', (hostname) => {
  expect(namesAt(hostname).addresses.isRefused()).toBe(false);
});

test('a name that leads to this machine is refused until it leads elsewhere, and of several addresses such are left out', async () => {
  const { addresses, become, sleep } = namesAt();
  become([{ address: '127.0.0.1', family: 4 }]);
  await used(addresses);
  expect(addresses.isRefused()).toBe(true);
  become([...v4(2, 1), { address: '169.254.169.254', family: 4 }]);
  sleep(30_000);
  expect(await used(addresses)).toEqual(['10.0.0.1', '10.0.0.2']);
  expect(addresses.isRefused()).toBe(false);
  become(new Error('no answer'));
  sleep(30_000);
  await used(addresses);
  expect(addresses.isRefused()).toBe(false);
});
