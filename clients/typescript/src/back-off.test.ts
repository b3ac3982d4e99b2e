import { describe, expect, it } from 'vitest';
import { backOffMs } from './back-off.ts';

const limits = { baseMs: 250, maxMs: 5000 };

describe('backOffMs', () => {
  it.each([
    { attempt: 0, random: 0, expected: 125 },
    { attempt: 0, random: 0.5, expected: 187.5 },
    { attempt: 1, random: 0, expected: 250 },
    { attempt: 3, random: 0.999_999, expected: 2000 },
    { attempt: 10, random: 0, expected: 2500 },
    { attempt: 100_000, random: 0.999_999, expected: 5000 },
  ])('attempt $attempt with random $random waits $expected ms', ({ attempt, random, expected }) => {
    expect(backOffMs(attempt, limits, () => random)).toBeCloseTo(expected, 1);
  });
});
