import { join } from 'node:path';
import { type ManagedProcess, startProcess } from './processes.ts';
import { runtime } from './runtime.ts';
import { waitUntil } from './wait.ts';

/** One of our own processes, run by the same Node as this one. */
export interface ServiceOptions {
  readonly name: string;
  /** Path of its main file, from the root. */
  readonly script: string;
  /** The repository's by default. */
  readonly root?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export interface ServiceContext {
  readonly logDirectory: string;
  /** What every service gets. */
  readonly env: NodeJS.ProcessEnv;
}

/** The root of the repository. */
export const REPOSITORY = join(import.meta.dirname, '..', '..');

const READY_TIMEOUT_MS = 60_000;

interface ReadyOptions {
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds; a minute by default. */
  readonly timeoutMs?: number;
}

/** Starts a service; its output goes to `<name>.log`. */
export function startService(service: ServiceOptions, { logDirectory, env }: ServiceContext): Promise<ManagedProcess> {
  return startProcess({
    name: service.name,
    command: process.execPath,
    args: [join(service.root ?? REPOSITORY, service.script), ...(service.args ?? [])],
    logFile: join(logDirectory, `${service.name}.log`),
    env: { ...runtime, ...env, ...service.env },
  });
}

/**
 * Waits until `/readyz` on the service's admin port answers 200.
 *
 * @throws with the end of its log when the service ends before.
 */
export async function waitUntilReady(
  service: Pick<ManagedProcess, 'name' | 'failed'>,
  adminPort: number,
  { signal, timeoutMs = READY_TIMEOUT_MS }: ReadyOptions = {},
): Promise<void> {
  const url = `http://127.0.0.1:${adminPort}/readyz`;
  const isReady = async (): Promise<boolean> => {
    try {
      const response = await fetch(url, { signal: AbortSignal.timeout(2_000) });
      await response.body?.cancel();
      return response.status === 200;
    } catch {
      return false;
    }
  };
  const { failed } = service;
  await waitUntil(`the ${service.name} is ready (${url})`, isReady, { timeoutMs, signal, failed });
}
