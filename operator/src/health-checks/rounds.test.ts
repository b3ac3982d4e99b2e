import { systemClock } from '@rollcall/platform/clock.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { expect, test } from 'vitest';
import { createRounds } from './rounds.ts';

const INTERVAL_MS = 40;

/** Rounds whose work takes as long as {@link end} is not called. */
function heldRounds() {
  const begun: string[] = [];
  const held: (() => void)[] = [];
  const rounds = createRounds<{ intervalMs: number; owner: string; name: string }>(systemClock, (key, { name }) => {
    begun.push(`${key} ${name}`);
    return new Promise((resolve) => void held.push(resolve));
  });
  const end = () => {
    for (const resolve of held.splice(0)) resolve();
  };
  return { rounds, begun, end };
}

function item(name: string, owner = name) {
  return { intervalMs: INTERVAL_MS, owner, name };
}

test('what is due is begun within its interval, again when it has ended, and never twice at once', async () => {
  const { rounds, begun, end } = heldRounds();
  rounds.set('shop', item('a'));
  await expect.poll(() => begun).toEqual(['shop a']);
  await sleep(3 * INTERVAL_MS);
  expect(begun).toEqual(['shop a']);
  end();
  await expect.poll(() => begun).toEqual(['shop a', 'shop a']);
  end();
  await rounds.stop();
});

test('64 are under way at most, and 16 of one owner', async () => {
  const { rounds, begun, end } = heldRounds();
  for (let index = 0; index < 100; index += 1) rounds.set(`hanging-${index}`, item('x', 'hanging'));
  await expect.poll(() => begun.length).toBe(16);
  for (let index = 0; index < 100; index += 1) rounds.set(`other-${index}`, item('x', `owner-${index}`));
  await expect.poll(() => begun.length).toBe(64);
  await sleep(2 * INTERVAL_MS);
  expect(begun.length).toBe(64);
  const stopped = rounds.stop();
  end();
  await stopped;
  expect(begun.length).toBe(64);
});

test('what was replaced or deleted is not done any more', async () => {
  const { rounds, begun, end } = heldRounds();
  rounds.set('shop', item('a'));
  rounds.set('cart', item('a'));
  rounds.delete('cart');
  await expect.poll(() => begun).toEqual(['shop a']);
  rounds.set('shop', item('b'));
  await sleep(3 * INTERVAL_MS);
  expect(begun).toEqual(['shop a']);
  end();
  await expect.poll(() => begun).toEqual(['shop a', 'shop b']);
  end();
  await expect.poll(() => begun).toEqual(['shop a', 'shop b', 'shop b']);
  end();
  await rounds.stop();
});
