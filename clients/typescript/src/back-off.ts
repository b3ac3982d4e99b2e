/** How long to wait between attempts. */
export interface BackOff {
  /** First delay in milliseconds, before jitter. */
  readonly baseMs: number;
  /** No delay is longer, in milliseconds. */
  readonly maxMs: number;
}

/**
 * Exponential back-off with "equal jitter": half of the delay is fixed and half random, so that
 * programs which lost the registry together do not return together, and none returns at once.
 *
 * @param attempt 0 for the first retry.
 * @returns milliseconds to wait.
 */
export function backOffMs(attempt: number, { baseMs, maxMs }: BackOff, random: () => number = Math.random): number {
  const ceiling = Math.min(maxMs, baseMs * 2 ** Math.min(attempt, 30));
  return ceiling / 2 + random() * (ceiling / 2);
}
