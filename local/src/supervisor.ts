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
  /** Milliseconds before a restart; a second by default. */
  readonly pauseMs?: number;
}

/** A process that is started again when it ends. */
export interface Supervised {
  /** Rejects when it keeps ending before it works: starting it again is no use. */
  readonly failed: Promise<never>;
  /** Stops it for good. */
  stop(): Promise<void>;
}

const FRUITLESS_STARTS_MAX = 5;

/**
 * Starts the process and waits until it works, once: what does not start at all is wrong, not
 * unlucky.
 *
 * @throws as `start` and `ready`; the process is stopped then.
 */
export async function supervise(options: SupervisorOptions): Promise<Supervised> {
  const { name, start, ready, log, graceMs, pauseMs = 1000 } = options;
  const stopping = new AbortController();
  const failed = Promise.withResolvers<never>();
  // Whoever waits for it sees the rejection; when nobody does, it must not end us.
  failed.promise.catch(() => undefined);
  let process = await start();
  let works = false;
  try {
    await ready(process);
    works = true;
  } catch (error) {
    await process.stop({ graceMs });
    throw error;
  }

  /** Is over when it is stopped, or given up. */
  async function keepRunning(): Promise<void> {
    let fruitless = 0;
    for (;;) {
      const { code, signal } = await process.exited;
      if (stopping.signal.aborted) return;
      fruitless = works ? 0 : fruitless + 1;
      if (fruitless === FRUITLESS_STARTS_MAX) await process.failed;
      const how = signal === null ? `with code ${code}` : `by ${signal}`;
      log(`The ${name} ended ${how}: it is started again in ${pauseMs / 1000} s (log: ${process.logFile})`);
      if (!(await sleep(pauseMs, stopping.signal))) return;
      await restart();
    }
  }

  async function restart(): Promise<void> {
    const started = await start();
    process = started;
    works = false;
    if (stopping.signal.aborted) await started.stop({ graceMs });
    // That it has ended is seen where it is kept running.
    announce(started).catch(() => undefined);
  }

  async function announce(started: ManagedProcess): Promise<void> {
    await ready(started);
    if (process !== started || stopping.signal.aborted) return;
    works = true;
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
