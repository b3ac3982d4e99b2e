import { isUnreachable, RegistryError } from '@rollcall/client/registry-error.ts';
import { CommanderError } from 'commander';

/**
 * What the command's exit code means to a script. `rollcall run` ends with its program's code
 * instead.
 */
export const exitCodes = { ok: 0, failed: 1, usage: 2, notFound: 3, timedOut: 3, unreachable: 4 } as const;

/** The same for people, below every help text. */
export const exitCodesHelp = `
Exit codes:
  0  done
  1  failed: it was refused; with --wait: the job did not end well
  2  wrong usage
  3  no such service; with --wait: the time limit passed, the job goes on
  4  nobody answered`;

/** Thrown for wrong usage that the command line parser cannot see. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Thrown where the gateway does not answer; its message says who chose that gateway. */
export class GatewayUnreachable extends Error {
  override readonly name = 'GatewayUnreachable';
}

/**
 * Thrown for a failure that no request ended with: a job that did not end well, or was not waited
 * for to its end.
 */
export class JobFailure extends Error {
  override readonly name = 'JobFailure';
  readonly exitCode: number;

  constructor(message: string, exitCode: number) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** The exit code for whatever ended a command. */
export function exitCodeFor(error: unknown): number {
  if (error instanceof CommanderError) return isHelp(error) ? exitCodes.ok : exitCodes.usage;
  if (error instanceof UsageError) return exitCodes.usage;
  if (error instanceof JobFailure) return error.exitCode;
  if (error instanceof GatewayUnreachable || isUnreachable(error)) return exitCodes.unreachable;
  return isServiceNotFound(error) ? exitCodes.notFound : exitCodes.failed;
}

/** Help that was asked for; help shown because no command was given has exit code 1. */
function isHelp({ exitCode }: CommanderError): boolean {
  return exitCode === 0;
}

/**
 * Not any 404: an unknown job or release is a refusal, so that 3 of a command that waits means the
 * time limit alone.
 */
function isServiceNotFound(error: unknown): boolean {
  return error instanceof RegistryError && error.error === 'Service not found';
}
