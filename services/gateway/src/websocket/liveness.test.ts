import { expect, test } from 'vitest';
import { createAwakeClock, createLiveness } from './liveness.ts';

test('a peer is pinged at intervals, and dead when none of it was heard in between', () => {
  const liveness = createLiveness(20, 0);
  expect(liveness.check(19)).toBe('nothing');
  expect(liveness.check(20)).toBe('ping');
  expect(liveness.check(39)).toBe('nothing');
  liveness.heard();
  expect(liveness.check(40)).toBe('ping');
  expect(liveness.check(59)).toBe('nothing');
  expect(liveness.check(60)).toBe('dead');
});

test('what the process slept through does not count', () => {
  let now = 0;
  const awake = createAwakeClock(() => now, 2);
  const liveness = createLiveness(20, awake());
  const step = (ms: number) => {
    now += ms;
    return liveness.check(awake());
  };
  for (let ms = 1; ms < 20; ms += 1) expect(step(1)).toBe('nothing');
  expect(step(1)).toBe('ping');
  expect(step(100_000)).toBe('nothing');
  for (let ms = 3; ms < 20; ms += 1) expect(step(1)).toBe('nothing');
  expect(step(1)).toBe('dead');
});
