import { isServiceNotFound, isUnreachable } from '@rollcall/client/registry-error.ts';
import { CommanderError } from 'commander';

/** What the command's exit code tells a script. `rollcall run` ends with its program's code instead. */
export const exitCodes = { ok: 0, failed: 1, usage: 2, notFound: 3, unreachable: 4 } as const;

/** The same for people, below every help text. */
export const exitCodesHelp = `
Exit codes:
  0  done
  1  failed: the registry refused it, or is unhealthy
  2  wrong usage
  3  no such service
  4  no registry answered`;

/** Thrown for wrong usage that the command line parser cannot see. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The exit code for whatever ended a command. */
export function exitCodeFor(error: unknown): number {
  if (error instanceof CommanderError) return isHelp(error) ? exitCodes.ok : exitCodes.usage;
  if (error instanceof UsageError) return exitCodes.usage;
  if (isUnreachable(error)) return exitCodes.unreachable;
  return isServiceNotFound(error) ? exitCodes.notFound : exitCodes.failed;
}

/** Help that was asked for; help shown because no command was given has exit code 1. */
function isHelp({ exitCode }: CommanderError): boolean {
  return exitCode === 0;
}
