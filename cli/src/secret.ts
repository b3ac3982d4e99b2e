import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { CliDeps } from './deps.ts';
import { UsageError } from './exit-codes.ts';
import { readText } from './read-text.ts';

/**
 * `--secret-file`. There is no option for the secret itself: other users can read a process'
 * arguments.
 */
export function addSecretOption(command: Command): Command {
  return command.option(
    '--secret-file <path>',
    "file that holds the service's webhook secret, to sign with (or variable ROLLCALL_WEBHOOK_SECRET)",
  );
}

/**
 * The webhook secret, without the line end that editors leave at the end of a file.
 *
 * @returns undefined where none is given.
 * @throws UsageError where the file cannot be read or is empty.
 */
export function secretOf(command: Command, { env, cwd }: CliDeps): string | undefined {
  const { secretFile }: { readonly secretFile?: string } = command.opts();
  if (secretFile === undefined) return env['ROLLCALL_WEBHOOK_SECRET'] || undefined;
  const secret = readText('--secret-file', resolve(cwd, secretFile)).replace(/\r?\n$/, '');
  if (secret === '') throw new UsageError(`--secret-file: ${secretFile} is empty`);
  return secret;
}
