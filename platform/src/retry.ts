import { setTimeout as delay } from 'node:timers/promises';

export interface BackoffOptions {
  /** First delay, before jitter. */
  readonly baseMs: number;
  /** No delay is longer. */
  readonly maxMs: number;
  /** Random source in [0, 1); a test passes its own. */
  readonly random?: () => number;
}

/**
 * Exponential back-off with "equal jitter": half of the delay is fixed, half random, so that
 * clients which failed together do not return together and none returns at once.
 *
 * @param attempt 0 for the first retry.
 * @returns milliseconds to wait.
 */
export function backoffMs(attempt: number, { baseMs, maxMs, random = Math.random }: BackoffOptions): number {
  const ceiling = Math.min(maxMs, baseMs * 2 ** Math.min(attempt, 30));
  return ceiling / 2 + random() * (ceiling / 2);
}

/** Waits, or returns early (false) when the signal aborts. Never throws. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<boolean> {
  try {
    await delay(ms, undefined, signal === undefined ? {} : { signal });
    return true;
  } catch {
    return false;
  }
}
