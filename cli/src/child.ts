import { type ChildProcess, spawn } from 'node:child_process';
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

/** The process' signals, kept from ending it. */
export interface CaughtSignals {
  /** Resolves at the first signal. */
  readonly first: Promise<void>;
  /** The signal that came before there was a child to send it to. */
  early(): NodeJS.Signals | undefined;
  /** From now on the child gets them. */
  forwardTo(child: ChildProcess): void;
  /** Signals have their usual effect again. */
  release(): void;
}

/** @param isSharedTerminal whether our child will have the same terminal as we do. */
export function catchSignals({ isSharedTerminal }: { readonly isSharedTerminal: boolean }): CaughtSignals {
  const first = Promise.withResolvers<void>();
  let early: NodeJS.Signals | undefined;
  let child: ChildProcess | undefined;
  const onSignal = (signal: NodeJS.Signals) => {
    first.resolve();
    if (child === undefined) early ??= signal;
    else if (!isSharedTerminal || !SENT_BY_TERMINAL.has(signal)) child.kill(signal);
  };
  for (const signal of FORWARDED) process.on(signal, onSignal);
  return {
    first: first.promise,
    early: () => early,
    forwardTo(started) {
      child = started;
    },
    release() {
      for (const signal of FORWARDED) process.off(signal, onSignal);
    },
  };
}

export interface ChildRun {
  readonly command: string;
  readonly args: readonly string[];
  readonly signals: CaughtSignals;
  readonly report: (message: string) => void;
}

/**
 * Runs a program with our standard streams to its end. It is not started when a signal has come
 * already.
 *
 * @returns its exit code as a shell would have it: 128 and the signal's number where one ended it,
 * 127 and 126 where it could not be started.
 */
export function runChild({ command, args, signals, report }: ChildRun): Promise<number> {
  const early = signals.early();
  if (early !== undefined) return Promise.resolve(exitCodeOfSignal(early));
  const child = spawn(command, args, { stdio: 'inherit' });
  signals.forwardTo(child);
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
