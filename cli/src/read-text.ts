import { readFileSync } from 'node:fs';
import { UsageError } from './exit-codes.ts';

/**
 * The text of a file that a command line names.
 *
 * @param name of the option or argument.
 * @throws UsageError where it cannot be read.
 */
export function readText(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(`${name}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}
