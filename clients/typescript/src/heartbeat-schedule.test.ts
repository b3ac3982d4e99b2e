import { describe, expect, it } from 'vitest';
import { nextHeartbeatInMs, scheduleFor } from './heartbeat-schedule.ts';

const retry = { baseMs: 250, maxMs: 5000 };
const schedule = scheduleFor(60, { intervalMs: 30_000, retry });

describe('scheduleFor', () => {
  it.each([
    { ttl: 60, intervalMs: 30_000, expected: [30_000, 45_000] },
    { ttl: 60, intervalMs: 10_000, expected: [10_000, 45_000] },
    { ttl: 60, intervalMs: 50_000, expected: [30_000, 45_000] },
    { ttl: 20, intervalMs: 30_000, expected: [10_000, 15_000] },
    { ttl: 600, intervalMs: 60_000, expected: [60_000, 45_000] },
  ])(
    'TTL $ttl s and an interval of $intervalMs ms give [interval, latest] $expected',
    ({ ttl, intervalMs, expected }) => {
      const { intervalMs: interval, latestMs } = scheduleFor(ttl, { intervalMs, retry });
      expect([interval, latestMs]).toEqual(expected);
    },
  );
});

describe('nextHeartbeatInMs', () => {
  it.each([
    { what: 'right after a success, least jitter', sinceSuccessMs: 0, failures: 0, random: 0, expected: 27_000 },
    { what: 'right after a success, most jitter', sinceSuccessMs: 0, failures: 0, random: 1, expected: 33_000 },
    { what: 'the answer took two seconds', sinceSuccessMs: 2000, failures: 0, random: 0.5, expected: 28_000 },
    { what: 'the process slept through it', sinceSuccessMs: 90_000, failures: 0, random: 0.5, expected: 0 },
    { what: 'first failure', sinceSuccessMs: 33_000, failures: 1, random: 0, expected: 125 },
    { what: 'sixth failure', sinceSuccessMs: 38_000, failures: 6, random: 1, expected: 5000 },
    { what: 'back-off reaching beyond 45 s', sinceSuccessMs: 44_000, failures: 9, random: 1, expected: 1000 },
    { what: 'beyond 45 s', sinceSuccessMs: 46_000, failures: 9, random: 1, expected: 5000 },
  ])('$what: waits $expected ms', ({ sinceSuccessMs, failures, random, expected }) => {
    expect(nextHeartbeatInMs({ sinceSuccessMs, failures }, schedule, () => random)).toBeCloseTo(expected, 3);
  });

  it('never lets 45 s pass without an attempt, whatever the interval', () => {
    const slow = scheduleFor(600, { intervalMs: 200_000, retry });
    expect(nextHeartbeatInMs({ sinceSuccessMs: 0, failures: 0 }, slow, () => 1)).toBe(45_000);
  });

  it('makes several attempts between a first failure and the end of the TTL', () => {
    let sinceSuccessMs = 33_000;
    let attempts = 0;
    while (sinceSuccessMs < 60_000) {
      attempts += 1;
      sinceSuccessMs += nextHeartbeatInMs({ sinceSuccessMs, failures: attempts }, schedule, () => 1);
    }
    expect(attempts).toBeGreaterThanOrEqual(8);
  });
});
