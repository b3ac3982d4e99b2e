import { errorMessage } from '../errors.ts';
import type { Actor } from '../process/lifecycle.ts';
import type { Logger } from '../process/log.ts';
import { sleep } from '../retry.ts';

const INTERVAL_MS = 3_600_000;
/** Deleted within some milliseconds, so that what is new does not wait for it. */
const BATCH = 1000;

export interface PrunerOptions {
  /** Of what is old, for the log. */
  readonly name: string;
  /** @param limit how many at most. @returns how many. */
  readonly prune: (limit: number) => Promise<number>;
  readonly log: Logger;
  /** An hour when absent. */
  readonly intervalMs?: number;
  /** After a failure; as long when absent. */
  readonly retryMs?: number;
}

/** Forgets or renews what is old, some at a time, once an hour. */
export function createPruner(options: PrunerOptions): Actor {
  const { name, prune, log, intervalMs = INTERVAL_MS, retryMs = intervalMs } = options;
  const stopping = new AbortController();
  let running: Promise<void> | undefined;

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      let pauseMs = intervalMs;
      try {
        if ((await prune(BATCH)) === BATCH) continue;
      } catch (error) {
        log.warn({ message: errorMessage(error), name }, 'what is old could not be deleted or renewed');
        pauseMs = retryMs;
      }
      await sleep(pauseMs, stopping.signal);
    }
  }

  return {
    name: `pruner-${name}`,
    async start() {
      running ??= run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
