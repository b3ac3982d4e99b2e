import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { cacheDirectory } from '@rollcall/local/cache-directory.ts';
import { defaultCacheDirectory, findKubernetesBinaries } from '@rollcall/local/kubernetes-binaries.ts';
import { BINARIES, type BinaryName, MODULES_DIRECTORY } from '@rollcall/local/kubernetes-modules.ts';
import { runCommand } from '../node/command.ts';
import { findTraefik, traefikSource } from '../traefik/binary.ts';

export interface GoBuildsOptions {
  readonly env: NodeJS.ProcessEnv;
  /** Called with a line of progress. */
  readonly log: (line: string) => void;
}

/**
 * Builds what the tests have from Go modules into the cache unless it is there: Kubernetes, Traefik,
 * Mailpit and Toxiproxy. With E2E_CACHE_ARCHIVES, a directory, it comes from the archive of these
 * versions in it; where there is none, it is written.
 *
 * @throws when a build fails.
 */
export async function ensureGoBuilds(options: GoBuildsOptions): Promise<void> {
  const { env, log } = options;
  const archives = env['E2E_CACHE_ARCHIVES'];
  if (archives === undefined || archives === '') {
    await buildAll(options);
    return;
  }
  const archive = join(archives, `go-builds-${await versionsKey(env)}.tar.gz`);
  const cache = dirname(defaultCacheDirectory(env));
  if (existsSync(archive)) {
    log(`Unpacking ${archive}`);
    await unpack(archive, cache);
  }
  const directories = await buildAll(options);
  if (!existsSync(archive)) {
    await pack(archive, cache, directories);
    log(`Wrote ${archive}`);
  }
}

/** @returns the directories of the cache with all of it. */
async function buildAll({ env, log }: GoBuildsOptions): Promise<string[]> {
  const names = Object.keys(BINARIES) as BinaryName[];
  const cache = defaultCacheDirectory(env);
  const binaries = await findKubernetesBinaries(names, { cacheDirectory: cache, log });
  const traefik = await findTraefik({ env, log });
  if ('problem' in traefik) log(`No Traefik: ${traefik.problem}`);
  const files = [...Object.values(binaries), ...('file' in traefik ? [traefik.file] : [])];
  const below = [dirname(cache), cacheDirectory(env, 'traefik')];
  const directories = new Set(files.map((file) => dirname(file)));
  // TRAEFIK_BIN is nobody's cache.
  return [...directories].filter((directory) => below.some((root) => directory.startsWith(`${root}/`)));
}

/** Of all that the builds are made of, and of the platform. */
async function versionsKey(env: NodeJS.ProcessEnv): Promise<string> {
  const hash = createHash('sha256').update(`${process.platform}-${process.arch}`);
  for (const root of [MODULES_DIRECTORY, traefikSource(env)].filter((each) => existsSync(each))) {
    const paths = (await readdir(root, { recursive: true })).filter((path) => /\.(go|mod|sum|json)$/.test(path));
    for (const path of paths.sort()) hash.update(`\n${path}\n`).update(await readFile(join(root, path)));
  }
  return hash.digest('hex').slice(0, 16);
}

/** What is in the cache already stays; the rest appears when it is complete. */
async function unpack(archive: string, cache: string): Promise<void> {
  await mkdir(cache, { recursive: true });
  const temporary = await mkdtemp(join(cache, '.archive-'));
  try {
    await runCommand(['tar', '--extract', '--gzip', '--file', archive, '--directory', temporary]);
    for (const kind of await readdir(temporary)) {
      await mkdir(join(cache, kind), { recursive: true });
      for (const name of await readdir(join(temporary, kind))) {
        const directory = join(cache, kind, name);
        if (!existsSync(directory)) await rename(join(temporary, kind, name), directory);
      }
    }
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

async function pack(archive: string, cache: string, directories: readonly string[]): Promise<void> {
  await mkdir(dirname(archive), { recursive: true });
  const temporary = `${archive}.${process.pid}`;
  const paths = directories.map((directory) => relative(cache, directory));
  const quick = '--use-compress-program=gzip -1';
  await runCommand(['tar', '--create', quick, '--exclude=.*', '--file', temporary, '--directory', cache, ...paths]);
  await rename(temporary, archive);
}
