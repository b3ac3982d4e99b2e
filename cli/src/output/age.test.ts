import { describe, expect, it } from 'vitest';
import { formatAge, formatDuration } from './age.ts';

describe('formatAge', () => {
  const now = new Date('2026-11-20T10:00:30Z');

  it.each([
    [-5000, '0s'],
    [0, '0s'],
    [1999, '1s'],
    [119_999, '119s'],
    [120_000, '2m'],
    [2 * 3_600_000 - 1, '119m'],
    [2 * 3_600_000, '2h'],
    [47.9 * 3_600_000, '47h'],
    [48 * 3_600_000, '2d'],
    [400 * 86_400_000, '400d'],
  ])('%d ms is %s', (ms, expected) => {
    expect(formatAge(new Date(now.getTime() - ms).toISOString(), now)).toBe(expected);
  });

  it.each([
    ['2026-11-20T11:00:00+01:00', '30s'],
    ['', '-'],
    ['yesterday', '-'],
  ])('%j was %s ago', (timestamp, expected) => {
    expect(formatAge(timestamp, now)).toBe(expected);
  });
});

describe('formatDuration', () => {
  it.each([
    [0, '0.0s'],
    [0.42, '0.4s'],
    [9.94, '9.9s'],
    [9.96, '10s'],
    [119.4, '119s'],
    [192, '3m12s'],
  ])('%d s is %s', (seconds, expected) => {
    expect(formatDuration(seconds)).toBe(expected);
  });
});
