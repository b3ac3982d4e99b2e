import { expect, test } from 'vitest';
import { backoffMs, sleep } from './retry.ts';

const options = { baseMs: 100, maxMs: 2000 };

test.each([
  { attempt: 0, random: 0, expected: 50 },
  { attempt: 0, random: 1, expected: 100 },
  { attempt: 3, random: 0.5, expected: 600 },
  { attempt: 10, random: 1, expected: 2000 },
  { attempt: 5000, random: 0, expected: 1000 },
])('attempt $attempt with random $random waits $expected ms', ({ attempt, random, expected }) => {
  expect(backoffMs(attempt, { ...options, random: () => random })).toBe(expected);
});

test('sleep ends early and says so when aborted', async () => {
  const controller = new AbortController();
  const slept = sleep(60_000, controller.signal);
  controller.abort();
  expect(await slept).toBe(false);
  expect(await sleep(1)).toBe(true);
});
