import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';

/** How many versions of each kind stay in the cache. */
const KEPT = { rollcall: 2, bases: 1, databases: 1 } as const;
/** No build takes as long. */
const ABANDONED_MS = 3_600_000;

/** A directory of the cache, named by its kind and by a digest of what it is made of. */
interface CachedDirectory {
  readonly cacheDirectory: string;
  readonly kind: keyof typeof KEPT;
  readonly key: string;
}

/**
 * The directory, built when it is not there. It appears when it is complete: several processes may
 * build at the same time, and one that is killed leaves nothing that counts. Of each kind those
 * that were used last are kept.
 */
export async function findOrBuild(
  { cacheDirectory, kind, key }: CachedDirectory,
  build: (directory: string) => Promise<void>,
): Promise<string> {
  const directory = join(cacheDirectory, `${kind}-${key}`);
  if (!existsSync(directory)) {
    await mkdir(cacheDirectory, { recursive: true });
    const temporary = await mkdtemp(join(cacheDirectory, `.${kind}-`));
    try {
      await build(temporary);
      await rename(temporary, directory).catch((err: unknown) => {
        // Another process was faster.
        if (!existsSync(directory)) throw err;
      });
    } finally {
      await rm(temporary, { recursive: true, force: true });
    }
  }
  const now = new Date();
  await utimes(directory, now, now);
  await removeOld(cacheDirectory);
  return directory;
}

/** Keeps what was used last of each kind, and removes what builds that were killed have left. */
async function removeOld(cacheDirectory: string): Promise<void> {
  const aged = await Promise.all(
    (await readdir(cacheDirectory)).map(async (name) => {
      // Gone when another process has just removed or renamed it.
      const stats = await stat(join(cacheDirectory, name)).catch(() => undefined);
      return { name, age: stats === undefined ? 0 : Date.now() - stats.mtimeMs };
    }),
  );
  const byAge = aged.toSorted((a, b) => a.age - b.age);
  const old = [
    ...Object.entries(KEPT).flatMap(([kind, kept]) =>
      byAge.filter(({ name }) => name.startsWith(`${kind}-`)).slice(kept),
    ),
    ...byAge.filter(({ name, age }) => name.startsWith('.') && age > ABANDONED_MS),
  ];
  await Promise.all(old.map(({ name }) => rm(join(cacheDirectory, name), { recursive: true, force: true })));
}
