import { createHash, hash, randomBytes } from 'node:crypto';
import { type FileHandle, open, readdir, rename, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import type { Checksum } from './checksum.ts';
import { localError } from './errors.ts';

/**
 * A file that is being fetched, beside the path where it will appear whole. Disposed before that,
 * nothing is left.
 */
export interface PartialFile extends AsyncDisposable {
  /** Bytes so far. */
  readonly size: number;
  append(chunk: Buffer): Promise<void>;
  /** Deletes the file. */
  startOver(): Promise<void>;
  /** Whether the file has the checksum. */
  matches(): boolean;
  /**
   * Makes it durable and executable and renames it to its path at once, whatever was there. It cannot
   * be used after that.
   */
  publish(): Promise<void>;
}

/**
 * Creates the partial file, under a name that no other fetcher has, and removes what killed ones
 * left. The checksum is computed of what is written, so that nothing has to be read again.
 *
 * @throws FetchError FAILED, as all its functions, when the file system does.
 */
export async function createPartialFile(output: string, { algorithm, hex }: Checksum): Promise<PartialFile> {
  const path = await local(output, async () => {
    await removeLeftovers(output);
    return join(dirname(output), `${leftoverPrefix(output)}${process.pid}.${randomBytes(4).toString('hex')}.part`);
  });
  // Appending: after a truncation the next byte goes to the start, whatever was written before.
  const file: FileHandle = await local(output, () => open(path, 'ax', 0o600));
  let digest = createHash(algorithm);
  let size = 0;
  let published = false;
  return {
    get size() {
      return size;
    },
    async append(chunk) {
      await local(output, () => file.appendFile(chunk));
      digest.update(chunk);
      size += chunk.length;
    },
    async startOver() {
      await local(output, () => file.truncate(0));
      digest = createHash(algorithm);
      size = 0;
    },
    matches: () => digest.copy().digest('hex') === hex,
    publish: () =>
      local(output, async () => {
        await file.chmod(0o755);
        await file.sync();
        await rename(path, output);
        published = true;
        await syncDirectory(dirname(output));
      }),
    async [Symbol.asyncDispose]() {
      await file.close();
      if (!published) await rm(path, { force: true });
    },
  };
}

/**
 * Of the machine's name too: on a shared volume nobody knows whether another machine's process
 * is alive.
 */
function leftoverPrefix(output: string): string {
  return `.rollcall-fetch-${hash('sha256', `${basename(output)}\0${hostname()}`, 'hex').slice(0, 16)}.`;
}

/** A fetcher that was killed could not clean up, and the volume may hold one file only. */
async function removeLeftovers(output: string): Promise<void> {
  const prefix = leftoverPrefix(output);
  for (const name of await readdir(dirname(output))) {
    if (!name.startsWith(prefix)) continue;
    const pid = Number(name.slice(prefix.length).split('.', 1)[0]);
    // In a container the next process often has the number of the last one, and is not that one.
    if (pid === process.pid || !isAlive(pid)) await rm(join(dirname(output), name), { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: alive, and somebody else's.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

/** Without this, a crash of the machine could undo the rename. */
async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path, 'r');
  await directory.sync();
}

async function local<Result>(output: string, act: () => Promise<Result>): Promise<Result> {
  try {
    return await act();
  } catch (error) {
    throw localError(`Cannot write ${output}`, error);
  }
}
