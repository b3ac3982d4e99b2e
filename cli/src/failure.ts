import { isUnreachable, RegistryError } from '@rollcall/client/registry-error.ts';
import { CommanderError } from 'commander';
import { JobFailure, UsageError } from './exit-codes.ts';
import { printable } from './output/text.ts';

/** Why a command failed, in the shape of the API's own errors. */
interface Failure {
  /** Error type (contract 1, "Errors"), or one of ours. */
  readonly error: string;
  readonly message: string;
  /** HTTP status of the registry's answer, where it gave one. */
  readonly status?: number;
}

/** @param source who chose the registry: one that does not answer is often the wrong one. */
export function explain(error: unknown, source: () => string): string {
  const message = printable(error instanceof Error ? error.message : String(error));
  return isUnreachable(error) ? `${message} (registry chosen by ${source()})` : message;
}

/** One line of JSON, for who asked for JSON. @param source as for {@link explain}. */
export function failureAsJson(error: unknown, source: () => string): string {
  return `${JSON.stringify(failureOf(error, source))}\n`;
}

function failureOf(error: unknown, source: () => string): Failure {
  if (error instanceof CommanderError) {
    const noCommand = error.code === 'commander.help';
    const message = noCommand ? 'no command was given' : error.message.replace(/^error: /, '').replace(/\s+/g, ' ');
    return { error: 'Wrong usage', message };
  }
  const message = explain(error, source);
  if (error instanceof UsageError) return { error: 'Wrong usage', message };
  if (error instanceof JobFailure) return { error: error.error, message };
  if (!(error instanceof RegistryError)) return { error: 'Failed', message };
  return { error: error.error, message, ...(error.status === undefined ? {} : { status: error.status }) };
}

/**
 * Whether the command line asks for JSON. Read here without the parser, because what is wrong may
 * be what it stops at.
 */
export function asksForJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  const own = end === -1 ? args : args.slice(0, end);
  return own.some((arg, index) =>
    arg === '-o' || arg === '--output' ? own[index + 1] === 'json' : /^(-o|--output=)json$/.test(arg),
  );
}
