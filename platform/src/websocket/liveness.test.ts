import { expect, test } from 'vitest';
import { createAwakeClock, createLiveness, type Intake, type Verdict } from './liveness.ts';

const nothingWaits: Intake = { sentFrames: 0, isWaiting: false };
const waits = (sentFrames: number): Intake => ({ sentFrames, isWaiting: true });

/** The payload of the ping that is to be sent. */
function pingOf(verdict: Verdict): Buffer {
  if (typeof verdict === 'string') throw new Error(`There is no ping: ${verdict}`);
  return verdict.ping;
}

test('a peer is pinged at intervals, and dead when it has not answered by the next', () => {
  const liveness = createLiveness(20, 0);
  expect(liveness.check(19, nothingWaits)).toBe('nothing');
  const first = pingOf(liveness.check(20, nothingWaits));
  expect(liveness.check(39, nothingWaits)).toBe('nothing');
  expect(liveness.answered(first)).toBe(true);
  pingOf(liveness.check(40, nothingWaits));
  expect(liveness.check(59, nothingWaits)).toBe('nothing');
  expect(liveness.check(60, nothingWaits)).toBe('dead');
});

test('nothing is an answer but the payload of the last ping, and that once', () => {
  const liveness = createLiveness(20, 0);
  expect(liveness.answered(Buffer.alloc(0))).toBe(false);
  const first = pingOf(liveness.check(20, nothingWaits));
  expect(liveness.answered(Buffer.alloc(0))).toBe(false);
  expect(liveness.answered(Buffer.alloc(first.length))).toBe(false);
  expect(liveness.answered(first)).toBe(true);
  expect(liveness.answered(first)).toBe(false);
  const second = pingOf(liveness.check(40, nothingWaits));
  expect(second.equals(first)).toBe(false);
  expect(liveness.answered(first)).toBe(false);
  expect(liveness.check(60, nothingWaits)).toBe('dead');
});

test('a peer that takes what waits for it is alive, and its one ping is good as long as it is on the way', () => {
  const liveness = createLiveness(20, 0);
  const ping = pingOf(liveness.check(20, waits(1)));
  expect(liveness.check(40, waits(2))).toBe('nothing');
  // The last of it.
  expect(liveness.check(60, { sentFrames: 9, isWaiting: false })).toBe('nothing');
  expect(liveness.answered(ping)).toBe(true);
  pingOf(liveness.check(80, { sentFrames: 9, isWaiting: false }));
});

test.each([
  ['takes nothing more of what waits', [waits(5), waits(5)]],
  ['has sentFrames what did not have to wait: the system took it', [nothingWaits, waits(7)]],
])('a peer is dead that %s', (_what, [before = nothingWaits, after = nothingWaits]) => {
  const liveness = createLiveness(20, 0);
  pingOf(liveness.check(20, before));
  expect(liveness.check(40, after)).toBe('dead');
});

test('what the process slept through does not count', () => {
  let now = 0;
  const awake = createAwakeClock(() => now, 2);
  const liveness = createLiveness(20, awake());
  const step = (ms: number) => {
    now += ms;
    return liveness.check(awake(), nothingWaits);
  };
  for (let ms = 1; ms < 20; ms += 1) expect(step(1)).toBe('nothing');
  pingOf(step(1));
  expect(step(100_000)).toBe('nothing');
  for (let ms = 3; ms < 20; ms += 1) expect(step(1)).toBe('nothing');
  expect(step(1)).toBe('dead');
});
