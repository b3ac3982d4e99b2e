import { sleep } from '@rollcall/platform/retry.ts';

export interface WaitOptions {
  /** Milliseconds until the wait is given up with an error. */
  readonly timeoutMs: number;
  /** Milliseconds between two checks; 50 by default. */
  readonly intervalMs?: number;
  /** Ends the wait with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Ends the wait with this rejection, for instance when the process that is waited for has died.
   */
  readonly failed?: Promise<never>;
}

/**
 * Checks again and again until the answer is true.
 *
 * @param description completes the sentence "... in time: <description>".
 * @throws on timeout, on abort, and when `failed` rejects or `check` throws.
 */
export async function waitUntil(
  description: string,
  check: () => Promise<boolean>,
  { timeoutMs, intervalMs = 50, signal, failed }: WaitOptions,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  const failures: unknown[] = [];
  failed?.catch((err: unknown) => failures.push(err));
  while (true) {
    signal?.throwIfAborted();
    if (failures.length > 0) throw failures[0];
    if (await check()) return;
    if (performance.now() > deadline) throw new Error(`Not within ${timeoutMs / 1000} s: ${description}`);
    await sleep(intervalMs, signal);
  }
}
