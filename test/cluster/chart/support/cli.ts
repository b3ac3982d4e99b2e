import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { REPOSITORY } from '@rollcall/local/services.ts';

const run = promisify(execFile);

/** Runs the command line against a registry. @returns what it prints. @throws when it ends with anything but 0. */
export async function rollcall(
  server: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const script = join(REPOSITORY, 'cli', 'src', 'main.ts');
  const { stdout } = await run(process.execPath, [script, ...args], {
    env: { PATH: process.env['PATH'], ROLLCALL_SERVER: server, ...env },
  });
  return stdout;
}
