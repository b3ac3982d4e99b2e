import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdir, open, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { findExecutable } from './executables.ts';

export interface ProcessOptions {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  /** Standard output and error are appended to this file. */
  readonly logFile: string;
  /**
   * The whole environment of the process; by default PATH only, so that nobody's settings get in.
   */
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
}

interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

interface StopOptions {
  /** How the process is asked; SIGTERM by default. */
  readonly signal?: NodeJS.Signals;
  /** Milliseconds until it is killed; 5 s by default. */
  readonly graceMs?: number;
}

export interface ManagedProcess {
  readonly name: string;
  readonly pid: number;
  readonly logFile: string;
  /** Resolves when the process has ended, for whatever reason. */
  readonly exited: Promise<ProcessExit>;
  /** Rejects, with the end of its log, when the process ends without `stop` having been called. */
  readonly failed: Promise<never>;
  /**
   * Asks the process to end, kills it when it does not, and resolves once it is gone. May be called
   * again.
   */
  stop(options?: StopOptions): Promise<void>;
}

/**
 * Starts a program that does not outlive us: on Linux the kernel kills it when this process ends,
 * however that happens (`setpriv --pdeathsig`; the signal follows the thread that forked, and Node
 * forks from its main thread). Elsewhere only `stop` ends it.
 *
 * It runs in a session of its own, so that Ctrl-C in a terminal reaches us alone and the order of
 * stopping is ours.
 */
export async function startProcess(options: ProcessOptions): Promise<ManagedProcess> {
  const { name, logFile } = options;
  await mkdir(dirname(logFile), { recursive: true });
  const [command = '', ...args] = [...(await deathSignalPrefix()), options.command, ...options.args];
  await using log = await open(logFile, 'a');
  const child = spawn(command, args, {
    env: options.env ?? { PATH: process.env['PATH'] },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    stdio: ['ignore', log.fd, log.fd],
    detached: true,
  });
  const exited = new Promise<ProcessExit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  const pid = await spawned(child);
  let stopping = false;
  const failed = exited.then(async ({ code, signal }): Promise<never> => {
    if (stopping) return new Promise(() => undefined);
    const how = signal === null ? `with code ${code}` : `by ${signal}`;
    throw new Error(`${name} ended ${how}. The end of ${logFile}:\n${await logTail(logFile)}`);
  });
  // Whoever waits for it sees the rejection; when nobody does, it must not end the process.
  failed.catch(() => undefined);
  const stop = async ({ signal = 'SIGTERM', graceMs = 5_000 }: StopOptions = {}): Promise<void> => {
    stopping = true;
    child.kill(signal);
    const kill = setTimeout(() => child.kill('SIGKILL'), graceMs);
    await exited;
    clearTimeout(kill);
  };
  return { name, pid, logFile, exited, failed, stop };
}

async function spawned(child: ChildProcess): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve).once('error', reject);
  });
  if (child.pid === undefined) throw new Error('A spawned process has no id');
  return child.pid;
}

/**
 * The command that makes the kernel kill a process with its parent, to be put before the process'
 * own.
 */
export async function deathSignalPrefix(): Promise<string[]> {
  if (process.platform !== 'linux') return [];
  const setpriv = await findExecutable('setpriv');
  return setpriv === undefined ? [] : [setpriv, '--pdeathsig', 'KILL', '--'];
}

const TAIL_LINES = 15;

/** The last lines of a log file, or nothing when it is not there. */
export async function logTail(file: string, lines = TAIL_LINES): Promise<string> {
  return lastLines(await readFile(file, 'utf8').catch(() => ''), lines);
}

function lastLines(text: string, lines = TAIL_LINES): string {
  return text.trimEnd().split('\n').slice(-lines).join('\n');
}

const execute = promisify(execFile);

export interface RunOptions {
  /** Ours by default. */
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
  /** Given to its standard input. */
  readonly stdin?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs a program to its end; like {@link startProcess} it does not outlive us.
 *
 * @returns what it prints on standard output.
 * @throws with the end of what it says on standard error when it ends with anything but 0, and the
 * signal's reason when that was aborted.
 */
export async function runProgram(command: readonly string[], options: RunOptions = {}): Promise<string> {
  const { env = process.env, cwd, stdin = '', signal } = options;
  const [file = '', ...args] = [...(await deathSignalPrefix()), ...command];
  const running = execute(file, args, {
    env,
    maxBuffer: 64 * 1024 * 1024,
    ...(cwd === undefined ? {} : { cwd }),
    ...(signal === undefined ? {} : { signal }),
  });
  // It may end before it has read everything; its exit code counts, not the broken pipe.
  running.child.stdin?.on('error', () => undefined).end(stdin);
  try {
    return (await running).stdout;
  } catch (cause) {
    signal?.throwIfAborted();
    const complaint = cause instanceof Error && 'stderr' in cause ? lastLines(String(cause.stderr)) : '';
    throw new Error(`${command.join(' ')}: ${complaint || errorMessage(cause)}`, { cause });
  }
}
