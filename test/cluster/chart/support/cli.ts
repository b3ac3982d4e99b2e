import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { REPOSITORY } from '@rollcall/local/services.ts';

const run = promisify(execFile);

interface CliOutput {
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the command line. @throws when it ends with anything but 0. */
export function runCli(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<CliOutput> {
  const script = join(REPOSITORY, 'cli', 'src', 'main.ts');
  return run(process.execPath, [script, ...args], { env: { PATH: process.env['PATH'], ...env } });
}

/**
 * Runs the command line against a registry.
 *
 * @returns what it prints.
 * @throws when it ends with anything but 0.
 */
export async function rollcall(
  server: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  return (await runCli(args, { ROLLCALL_SERVER: server, ...env })).stdout;
}
