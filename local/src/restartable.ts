import { type ManagedProcess, type ProcessOptions, startProcess } from './processes.ts';
import { waitUntil } from './wait.ts';

/** A server's process, which can be ended and started again with the same data and port. */
export interface Restartable extends AsyncDisposable {
  /** The process id of the server while it runs. */
  readonly pid: number | undefined;
  /** Rejects when the server ends by itself, killed from outside included. */
  readonly failed: Promise<never>;
  /** Ends the server with SIGKILL. */
  kill(): Promise<void>;
  start(): Promise<void>;
  /** May be called again. */
  stop(): Promise<void>;
}

export interface RestartableOptions extends ProcessOptions {
  readonly isReady: () => Promise<boolean>;
  /** How it is asked to end. */
  readonly stopSignal: NodeJS.Signals;
  readonly signal: AbortSignal | undefined;
}

const READY_TIMEOUT_MS = 60_000;

/**
 * Starts a server and waits until it is ready.
 *
 * @throws with the end of its log when it does not start; it is stopped then.
 */
export async function startRestartable(options: RestartableOptions): Promise<Restartable> {
  const { name, isReady, stopSignal, signal } = options;
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => undefined);
  let server: ManagedProcess | undefined;
  const end = async (how: NodeJS.Signals): Promise<void> => {
    const ending = server;
    server = undefined;
    await ending?.stop({ signal: how });
  };
  const start = async (): Promise<void> => {
    const { failed } = (server = await startProcess(options));
    try {
      await waitUntil(`${name} is ready`, isReady, { timeoutMs: READY_TIMEOUT_MS, signal, failed });
    } catch (err) {
      await end(stopSignal);
      throw err;
    }
    failed.catch(failure.reject);
  };
  await start();
  return {
    get pid() {
      return server?.pid;
    },
    failed: failure.promise,
    kill: () => end('SIGKILL'),
    start,
    stop: () => end(stopSignal),
    [Symbol.asyncDispose]: () => end(stopSignal),
  };
}
