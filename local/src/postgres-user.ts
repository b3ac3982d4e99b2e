import { chown } from 'node:fs/promises';
import { findExecutable } from './executables.ts';
import { deathSignalPrefix, runProgram } from './processes.ts';

const NOBODY = 65_534;

/**
 * Finds a way to run PostgreSQL, which refuses to run as root: as an ordinary user simply as it is;
 * as root in a user namespace that shows root as somebody else, or, where that is not allowed, as
 * "nobody", to whom the directory is given.
 *
 * @returns the command to put before the program's own.
 * @throws with what to do when there is no way.
 */
export async function unprivilegedPrefix(directory: string, postgres: string): Promise<string[]> {
  if (process.getuid?.() !== 0) return [];
  // The kernel may drop a death signal that was set before a change of user, so it is set once more
  // after it.
  const deathSignal = await deathSignalPrefix();
  const unshare = ['unshare', '--user', '--map-user=1000', '--map-group=1000', '--'];
  if (await works([...unshare, postgres, '--version'])) return [...unshare, ...deathSignal];
  await chown(directory, NOBODY, NOBODY);
  const setpriv = ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups', '--'];
  if ((await works([...setpriv, 'test', '-w', directory])) && (await works([...setpriv, postgres, '--version']))) {
    return [...setpriv, ...deathSignal];
  }
  const found = (await findExecutable('unshare')) === undefined ? 'unshare is not installed' : 'unshare is not allowed';
  throw new Error(
    `PostgreSQL does not run as root, and it cannot be run otherwise here: ${found}, and the user with id ${NOBODY} ` +
      `cannot use ${postgres} and ${directory}. Run this as an ordinary user.`,
  );
}

async function works(command: readonly string[]): Promise<boolean> {
  try {
    await runProgram(command);
    return true;
  } catch {
    return false;
  }
}
