import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const MAIN = join(import.meta.dirname, '..', '..', 'fetcher', 'src', 'main.ts');

/** `rollcall fetch`, running. */
export interface FetcherProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<FetcherResult>;
}

interface FetcherResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly err: string;
}

/** Starts the command. @param environment besides PATH. */
export function startFetcher(args: readonly string[], environment: Readonly<Record<string, string>>): FetcherProcess {
  const child = spawn(process.execPath, [MAIN, 'fetch', ...args], {
    env: { PATH: process.env['PATH'], ...environment },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let err = '';
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk.toString();
  });
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, err }));
  return { child, ended };
}
