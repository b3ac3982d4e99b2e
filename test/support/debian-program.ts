import { readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { cacheDirectory } from '@rollcall/local/cache-directory.ts';
import { fetchDebianPackage, hasDebianTools } from '@rollcall/local/debian-packages.ts';
import { findExecutable } from '@rollcall/local/executables.ts';
import { withLock } from '@rollcall/local/file-lock.ts';

/** A program that a test asks whether ours do as it does. */
interface Program {
  readonly file: string;
  /** With the libraries that come along. */
  readonly env: Readonly<Record<string, string>>;
}

interface ProgramOptions {
  readonly name: string;
  /** Of Debian, which has it. */
  readonly packageName: string;
  /** Of the file, where Debian calls it by its version; the name when absent. */
  readonly fileName?: RegExp;
}

/**
 * Finds a program on the PATH, or in the cache, where it is unpacked at first from Debian's archive.
 * Nothing is installed.
 *
 * @returns undefined where there is neither the program nor apt.
 * @throws Error where its package cannot be fetched.
 */
export async function findProgram(options: ProgramOptions): Promise<Program | undefined> {
  const { name, packageName } = options;
  const file = await findExecutable(name);
  if (file !== undefined) return { file, env: {} };
  if (!(await hasDebianTools())) return undefined;
  const cache = cacheDirectory(process.env, 'debian');
  const directory = join(cache, `${packageName}_${process.platform}-${process.arch}`);
  return withLock(cache, {}, async () => {
    const unpacked = await programIn(directory, options);
    if (unpacked !== undefined) return unpacked;
    await unpack(packageName, directory);
    const made = await programIn(directory, options);
    if (made === undefined) throw new Error(`${packageName} does not have ${name}`);
    return made;
  });
}

async function unpack(packageName: string, directory: string): Promise<void> {
  const temporary = `${directory}.${process.pid}`;
  const unpacked = join(temporary, 'unpacked');
  try {
    const workDirectory = join(temporary, 'apt');
    await fetchDebianPackage({ packages: [packageName], directory: unpacked, workDirectory });
    await rm(directory, { recursive: true, force: true });
    await rename(unpacked, directory);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

async function programIn(directory: string, { name, fileName }: ProgramOptions): Promise<Program | undefined> {
  const programs = join(directory, 'usr', 'bin');
  const found = (await readdir(programs).catch(() => [])).find((each) => fileName?.test(each) ?? each === name);
  if (found === undefined) return undefined;
  const files = await readdir(directory, { recursive: true });
  const libraries = files.filter((path) => /\.so(\.\d+)*$/.test(path)).map((path) => join(directory, dirname(path)));
  return { file: join(programs, found), env: { LD_LIBRARY_PATH: [...new Set(libraries)].join(':') } };
}
