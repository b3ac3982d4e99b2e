import { errorMessage } from '@rollcall/platform/errors.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import type { ManagedProcess } from './processes.ts';

export interface SupervisorOptions {
  readonly name: string;
  /** Starts the process anew. */
  readonly start: () => Promise<ManagedProcess>;
  /** Resolves once the process works; rejects when it ends before. */
  readonly ready: (process: ManagedProcess) => Promise<void>;
  readonly log: (line: string) => void;
  /** Milliseconds that the process has to end when it is stopped. */
  readonly graceMs: number;
  /**
   * Before a restart; doubled by each one that comes before the process has worked for `resetMs`.
   */
  readonly backOff?: { readonly baseMs: number; readonly maxMs: number; readonly resetMs: number };
}

/** A process that is started again when it ends, as a kubelet would. */
export interface Supervised {
  /** Rejects when it keeps ending before it works: starting it again is no use. */
  readonly failed: Promise<never>;
  /** Stops it for good. */
  stop(): Promise<void>;
}

const BACK_OFF = { baseMs: 1000, maxMs: 30_000, resetMs: 60_000 };
const FRUITLESS_STARTS_MAX = 5;

/**
 * Starts the process and waits until it works, once: what does not start at all is wrong, not
 * unlucky.
 *
 * @throws as `start` and `ready`; the process is stopped then.
 */
export async function supervise(options: SupervisorOptions): Promise<Supervised> {
  const { name, start, ready, log, graceMs, backOff = BACK_OFF } = options;
  const stopping = new AbortController();
  const failed = Promise.withResolvers<never>();
  // Whoever waits for it sees the rejection; when nobody does, it must not end us.
  failed.promise.catch(() => undefined);
  let process = await start();
  let readyAtMs: number | undefined;
  try {
    await ready(process);
    readyAtMs = performance.now();
  } catch (error) {
    await process.stop({ graceMs });
    throw error;
  }

  /** Is over when it is stopped, or given up. */
  async function keepRunning(): Promise<void> {
    let restarts = 0;
    let fruitless = 0;
    for (;;) {
      const { code, signal } = await process.exited;
      if (stopping.signal.aborted) return;
      fruitless = readyAtMs === undefined ? fruitless + 1 : 0;
      if (fruitless === FRUITLESS_STARTS_MAX) await process.failed;
      if (readyAtMs !== undefined && performance.now() - readyAtMs >= backOff.resetMs) restarts = 0;
      const delayMs = Math.min(backOff.baseMs * 2 ** restarts, backOff.maxMs);
      restarts += 1;
      const how = signal === null ? `with code ${code}` : `by ${signal}`;
      log(`The ${name} ended ${how}: it is started again in ${delayMs / 1000} s (log: ${process.logFile})`);
      if (!(await sleep(delayMs, stopping.signal))) return;
      await restart();
    }
  }

  async function restart(): Promise<void> {
    const started = await start();
    process = started;
    readyAtMs = undefined;
    if (stopping.signal.aborted) await started.stop({ graceMs });
    // That it has ended is seen where it is kept running.
    announce(started).catch(() => undefined);
  }

  async function announce(started: ManagedProcess): Promise<void> {
    await ready(started);
    if (process !== started || stopping.signal.aborted) return;
    readyAtMs = performance.now();
    log(`The ${name} works again`);
  }

  const kept = keepRunning().catch((error: unknown) => {
    failed.reject(new Error(`The ${name} cannot be kept running: ${errorMessage(error)}`, { cause: error }));
  });
  return {
    failed: failed.promise,
    async stop() {
      stopping.abort();
      await process.stop({ graceMs });
      await kept;
    },
  };
}
