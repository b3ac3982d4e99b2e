import { spawn } from 'node:child_process';
import { constants } from 'node:os';

/**
 * Signals that ask a program to do something; the others cannot be caught or have nothing to do
 * with it.
 */
const FORWARDED = ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;

/**
 * Signals that a terminal sends to all processes in its foreground: our child gets them without us.
 */
const SENT_BY_TERMINAL: ReadonlySet<string> = new Set(['SIGINT', 'SIGQUIT', 'SIGHUP']);

const NOT_FOUND = 127;
const NOT_EXECUTABLE = 126;

export interface ChildRun {
  readonly command: string;
  readonly args: readonly string[];
  /** Whether the child has the same terminal as we do. */
  readonly isSharedTerminal: boolean;
  readonly report: (message: string) => void;
}

/**
 * Runs a program with our standard streams to its end. From now on it gets the signals that we get.
 *
 * @returns its exit code as a shell would have it: 128 and the signal's number where one ended it,
 * 127 and 126 where it could not be started.
 */
export function runChild({ command, args, isSharedTerminal, report }: ChildRun): Promise<number> {
  const child = spawn(command, args, { stdio: 'inherit' });
  const forward = (signal: NodeJS.Signals) => {
    if (!isSharedTerminal || !SENT_BY_TERMINAL.has(signal)) child.kill(signal);
  };
  for (const signal of FORWARDED) process.on(signal, forward);
  return new Promise((resolve) => {
    child.once('error', (error) => {
      report(`${command} could not be started: ${error.message}`);
      resolve(exitCodeOfSpawnError(error));
    });
    child.once('exit', (code, signal) => resolve(signal === null ? (code ?? 0) : exitCodeOfSignal(signal)));
  });
}

/** As POSIX shells report a program that a signal ended. */
export function exitCodeOfSignal(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

/** As POSIX shells report a program that could not be started. */
export function exitCodeOfSpawnError(error: NodeJS.ErrnoException): number {
  return error.code === 'ENOENT' ? NOT_FOUND : NOT_EXECUTABLE;
}
