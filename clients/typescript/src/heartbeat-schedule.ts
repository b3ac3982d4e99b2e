import { type BackOff, backOffMs } from './back-off.ts';

/** When to send heartbeats, in milliseconds after the last one that succeeded. */
export interface HeartbeatSchedule {
  /** The usual time, before jitter. */
  readonly intervalMs: number;
  /** The next attempt begins no later than this, whatever jitter and back-off say. */
  readonly latestMs: number;
  /** Between attempts after a failure. */
  readonly retry: BackOff;
}

/**
 * Recommended and maximum safe heartbeat interval (contract 1, "Limits"), and the latter's share of
 * the TTL of 60 s.
 */
export const RECOMMENDED_INTERVAL_MS = 30_000;
const MAX_SAFE_INTERVAL_MS = 45_000;
const MAX_SAFE_SHARE_OF_TTL = 0.75;

/** Interval times 0.9 to 1.1: services that were started together drift apart. */
const JITTER = 0.1;

/**
 * The schedule for a registration with this TTL: what was asked for, but never slower than half of
 * the TTL.
 *
 * @param ttlSeconds as the registry answered.
 */
export function scheduleFor(ttlSeconds: number, { intervalMs, retry }: Omit<HeartbeatSchedule, 'latestMs'>) {
  return {
    intervalMs: Math.min(intervalMs, (ttlSeconds * 1000) / 2),
    latestMs: Math.min(MAX_SAFE_INTERVAL_MS, ttlSeconds * 1000 * MAX_SAFE_SHARE_OF_TTL),
    retry,
  } satisfies HeartbeatSchedule;
}

/** Where a registration stands between two heartbeats. */
export interface HeartbeatProgress {
  /** Milliseconds since the last successful one was sent. */
  readonly sinceSuccessMs: number;
  /** How many attempts have failed since. */
  readonly failures: number;
}

/**
 * How long to wait before the next heartbeat. After a failure the first retries come quickly, and
 * one attempt is always made at `latestMs`, when there is still a quarter of the TTL left.
 *
 * @returns milliseconds, 0 when it is due.
 */
export function nextHeartbeatInMs(
  { sinceSuccessMs, failures }: HeartbeatProgress,
  { intervalMs, latestMs, retry }: HeartbeatSchedule,
  random: () => number = Math.random,
): number {
  const left = latestMs - sinceSuccessMs;
  if (failures > 0) {
    const backOff = backOffMs(failures - 1, retry, random);
    return left > 0 ? Math.min(backOff, left) : backOff;
  }
  const due = intervalMs * (1 - JITTER + 2 * JITTER * random());
  return Math.max(0, Math.min(due - sinceSuccessMs, left));
}
