import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Runs a program to its end and returns what it prints.
 *
 * @throws with what it says on standard error when it fails.
 */
export async function runCommand([command = '', ...args]: readonly string[], signal?: AbortSignal): Promise<string> {
  const options = { maxBuffer: 64 * 1024 * 1024, ...(signal === undefined ? {} : { signal }) };
  const { stdout } = await run(command, args, options);
  return stdout;
}
