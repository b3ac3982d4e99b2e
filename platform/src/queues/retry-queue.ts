import type { Clock } from '../clock.ts';
import { type BackoffOptions, backoffMs } from '../retry.ts';
import { createWorkQueue } from './workqueue.ts';

export interface RetryQueueOptions {
  /**
   * Called for one key at a time, but for several keys at once. A rejection brings the key back
   * after the back-off.
   */
  readonly work: (key: string) => Promise<void>;
  readonly concurrency: number;
  readonly backoff: BackoffOptions;
  readonly clock: Clock;
  /** @param failures how often in a row, this time included. */
  readonly onFailure: (error: unknown, key: string, failures: number) => void;
}

/**
 * Keys to be worked on: each is there once, however often it is added, and is worked on again if
 * added meanwhile.
 */
export interface RetryQueue {
  add(key: string): void;
  /** Keys that wait, and failed ones that are to be tried again. */
  readonly size: number;
  /** Resolves when nothing is worked on any more; what waits is dropped. */
  stop(): Promise<void>;
}

export function createRetryQueue(options: RetryQueueOptions): RetryQueue {
  const { work, concurrency, backoff, clock, onFailure } = options;
  const queue = createWorkQueue({ clock, baseDelayMs: backoff.baseMs, maxDelayMs: backoff.maxMs });
  const failures = new Map<string, number>();

  async function attempt(key: string): Promise<void> {
    try {
      await work(key);
      failures.delete(key);
    } catch (error) {
      const count = (failures.get(key) ?? 0) + 1;
      failures.set(key, count);
      onFailure(error, key, count);
      queue.addAfter(key, backoffMs(count - 1, backoff));
    }
    queue.done(key);
  }

  async function worker(): Promise<void> {
    for (let key = await queue.next(); key !== undefined; key = await queue.next()) await attempt(key);
  }

  const workers = Array.from({ length: concurrency }, worker);
  return {
    add: (key) => queue.add(key),
    get size() {
      return queue.depth() + failures.size;
    },
    async stop() {
      await queue.shutDown();
      await Promise.all(workers);
    },
  };
}
