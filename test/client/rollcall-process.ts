import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { vi } from 'vitest';
import { COMPILE_CACHE } from '../support/replica.ts';

const MAIN = join(import.meta.dirname, '..', '..', 'cli', 'src', 'main.ts');

/** The command `rollcall`, running. */
export interface RollcallProcess {
  readonly child: ChildProcess;
  out(): string;
  err(): string;
  readonly ended: Promise<RollcallResult>;
}

export interface RollcallResult {
  /** As a shell would have it. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
}

export interface RollcallOptions {
  /** The environment, besides PATH. */
  readonly env?: Readonly<Record<string, string>>;
  /** Default: the root of the file system, where no `.local` is. */
  readonly cwd?: string;
}

/** Starts the command as a user would. */
export function startRollcall(args: readonly string[], { env, cwd = '/' }: RollcallOptions = {}): RollcallProcess {
  const child = spawn(process.execPath, [MAIN, ...args], {
    cwd,
    env: { PATH: process.env['PATH'], NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk.toString();
  });
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, out, err }));
  return { child, out: () => out, err: () => err, ended };
}

/** Runs the command to its end. */
export function rollcall(args: readonly string[], options: RollcallOptions = {}): Promise<RollcallResult> {
  return startRollcall(args, options).ended;
}

/** Waits until the process has printed this. */
export function printed(running: RollcallProcess, text: string): Promise<void> {
  return vi.waitFor(
    () => {
      if (!running.out().includes(text)) throw new Error(`not printed: ${text}\n${running.out()}\n${running.err()}`);
    },
    { timeout: 10_000 },
  );
}
