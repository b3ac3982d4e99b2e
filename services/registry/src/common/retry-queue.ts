import { type BackoffOptions, backoffMs } from '@rollcall/platform/retry.ts';

export interface RetryQueueOptions {
  /**
   * Called for one key at a time, but for several keys at once. A rejection brings the key back
   * after the back-off.
   */
  readonly work: (key: string) => Promise<void>;
  readonly concurrency: number;
  readonly backoff: BackoffOptions;
  /** @param failures how often in a row, this time included. */
  readonly onFailure: (error: unknown, key: string, failures: number) => void;
}

/**
 * Keys to be worked on: each is there once, however often it is added, and is worked on again if
 * added meanwhile.
 */
export interface RetryQueue {
  add(key: string): void;
  /** Keys that wait, back-off included. */
  readonly size: number;
  /** Resolves when nothing is worked on any more; what waits is dropped. */
  stop(): Promise<void>;
}

export function createRetryQueue({ work, concurrency, backoff, onFailure }: RetryQueueOptions): RetryQueue {
  const ready = new Set<string>();
  const active = new Map<string, Promise<void>>();
  const delayed = new Map<string, NodeJS.Timeout>();
  const failures = new Map<string, number>();
  let stopped = false;

  function add(key: string): void {
    if (stopped) return;
    clearTimeout(delayed.get(key));
    delayed.delete(key);
    ready.add(key);
    fill();
  }

  function fill(): void {
    for (const key of ready) {
      if (stopped || active.size >= concurrency) return;
      if (active.has(key)) continue;
      ready.delete(key);
      active.set(key, run(key));
    }
  }

  async function run(key: string): Promise<void> {
    try {
      await work(key);
      failures.delete(key);
    } catch (error) {
      const count = (failures.get(key) ?? 0) + 1;
      failures.set(key, count);
      onFailure(error, key, count);
      if (!stopped && !ready.has(key)) {
        delayed.set(
          key,
          setTimeout(() => add(key), backoffMs(count - 1, backoff)),
        );
      }
    }
    active.delete(key);
    fill();
  }

  return {
    add,
    get size() {
      return ready.size + delayed.size;
    },
    async stop() {
      stopped = true;
      for (const timer of delayed.values()) clearTimeout(timer);
      await Promise.all(active.values());
    },
  };
}
