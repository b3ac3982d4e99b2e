import { mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '@rollcall/platform/retry.ts';
import { cacheDirectory } from './cache-directory.ts';
import { isExecutable } from './executables.ts';
import { tryLock } from './file-lock.ts';
import { goProblem, proxiesOnly, readGoEnvironment, requiredGoVersion, runGo } from './go-toolchain.ts';
import {
  BINARIES,
  type BinaryName,
  cacheKey,
  linkerFlags,
  MODULES_DIRECTORY,
  type ModuleName,
  readVersions,
} from './kubernetes-modules.ts';

/** Absolute paths of executables, by name. */
export type KubernetesBinaries<Name extends BinaryName = BinaryName> = Readonly<Record<Name, string>>;

export interface FindBinariesOptions {
  /** KUBEBUILDER_ASSETS: a directory with binaries that go before the cache. */
  readonly assetsDirectory?: string | undefined;
  /** The cache's root; see `defaultCacheDirectory`. */
  readonly cacheDirectory: string;
  /** Takes a line of progress. Silent when nothing has to be built. */
  readonly log: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/** What every set of test assets has; its absence means that KUBEBUILDER_ASSETS points to the wrong place. */
const EXPECTED_ASSETS: readonly BinaryName[] = ['etcd', 'kube-apiserver', 'kubectl'];

const PROGRESS_INTERVAL_MS = 15_000;

/** `$XDG_CACHE_HOME/rollcall/kubernetes`, by default below `~/.cache`. */
export function defaultCacheDirectory(env: NodeJS.ProcessEnv): string {
  return cacheDirectory(env, 'kubernetes');
}

/**
 * Finds the binaries: in KUBEBUILDER_ASSETS, else in the cache, else builds them from the pinned Go modules into the
 * cache (minutes, once). Several processes may do so at the same time: one builds, the others wait for it.
 *
 * @throws when KUBEBUILDER_ASSETS lacks what it must hold, and when something has to be built and Go is missing, too
 * old, or fails.
 */
export async function findKubernetesBinaries<Name extends BinaryName>(
  names: readonly Name[],
  options: FindBinariesOptions,
): Promise<KubernetesBinaries<Name>> {
  const found: Partial<Record<BinaryName, string>> = {};
  const missing: BinaryName[] = [];
  for (const name of names) {
    const asset = await findAsset(name, options.assetsDirectory);
    if (asset === undefined) missing.push(name);
    else found[name] = asset;
  }
  for (const [module, wanted] of byModule(missing)) {
    const directory = await moduleCacheDirectory(module, options.cacheDirectory);
    await ensureBuilt({ module, names: wanted, directory }, options);
    for (const name of wanted) found[name] = join(directory, name);
  }
  return requireAll(names, found);
}

function requireAll<Name extends BinaryName>(
  names: readonly Name[],
  found: Partial<Record<BinaryName, string>>,
): KubernetesBinaries<Name> {
  const isComplete = (value: Partial<Record<BinaryName, string>>): value is Record<Name, string> =>
    names.every((name) => value[name] !== undefined);
  if (!isComplete(found)) throw new Error(`Not all found: ${names.join(', ')}`);
  return found;
}

async function findAsset(name: BinaryName, directory: string | undefined): Promise<string | undefined> {
  if (directory === undefined || directory === '') return undefined;
  const file = join(directory, name);
  if (await isExecutable(file)) return file;
  if (!EXPECTED_ASSETS.includes(name)) return undefined;
  throw new Error(`KUBEBUILDER_ASSETS is ${directory}, but there is no executable ${name} in it`);
}

/** Groups by module, keeping the order, because one lock and one directory serve a whole module. */
export function byModule(names: readonly BinaryName[]): Map<ModuleName, BinaryName[]> {
  const groups = new Map<ModuleName, BinaryName[]>();
  for (const name of names) {
    const { module } = BINARIES[name];
    groups.set(module, [...(groups.get(module) ?? []), name]);
  }
  return groups;
}

async function moduleCacheDirectory(module: ModuleName, cacheDirectory: string): Promise<string> {
  const versions = await readVersions();
  const source = join(MODULES_DIRECTORY, module);
  const key = cacheKey({
    goMod: await readFile(join(source, 'go.mod'), 'utf8'),
    goSum: await readFile(join(source, 'go.sum'), 'utf8'),
    linkerFlags: linkerFlags(module, versions),
    platform: `${process.platform}-${process.arch}`,
    sources: await readSources(source),
  });
  return join(cacheDirectory, `${module}-${versions[module]}-${key}`);
}

async function readSources(directory: string): Promise<string[]> {
  const files = (await readdir(directory)).filter((name) => name.endsWith('.go')).sort();
  return Promise.all(files.map((name) => readFile(join(directory, name), 'utf8')));
}

interface Build {
  readonly module: ModuleName;
  readonly names: readonly BinaryName[];
  readonly directory: string;
}

async function ensureBuilt(build: Build, options: FindBinariesOptions): Promise<void> {
  let announced = false;
  while ((await notYetBuilt(build)).length > 0) {
    options.signal?.throwIfAborted();
    await mkdir(build.directory, { recursive: true });
    const attempt = await tryLock(join(build.directory, '.lock'));
    if ('lock' in attempt) {
      try {
        return await buildAll({ ...build, names: await notYetBuilt(build) }, options);
      } finally {
        await attempt.lock.release();
      }
    }
    if (!announced) options.log(`Waiting for process ${attempt.heldBy}, which builds ${build.names.join(', ')} ...`);
    announced = true;
    await sleep(500, options.signal);
  }
}

async function notYetBuilt({ directory, names }: Build): Promise<BinaryName[]> {
  const missing: BinaryName[] = [];
  for (const name of names) if (!(await isExecutable(join(directory, name)))) missing.push(name);
  return missing;
}

async function buildAll({ module, names, directory }: Build, options: FindBinariesOptions): Promise<void> {
  const { log, signal } = options;
  const cwd = join(MODULES_DIRECTORY, module);
  const go = await readGoEnvironment();
  const problem = goProblem(go, requiredGoVersion(await readFile(join(cwd, 'go.mod'), 'utf8')));
  if (problem !== undefined) throw new Error(problem);
  const versions = await readVersions();
  const env = { CGO_ENABLED: '0', GOWORK: 'off', GOPROXY: proxiesOnly(go?.proxy ?? '') };
  log(
    `Building ${names.join(', ')} ${versions[module]} from source. First run only: the result is kept in ${directory}`,
  );
  for (const name of names) {
    const temporary = join(directory, `.${name}.${process.pid}`);
    const flags = ['-mod=readonly', '-buildvcs=false', '-trimpath', '-ldflags', linkerFlags(module, versions)];
    const started = performance.now();
    const elapsed = (): string => `${Math.round((performance.now() - started) / 1000)} s`;
    const progress = setInterval(() => log(`  ${name}: still building after ${elapsed()}`), PROGRESS_INTERVAL_MS);
    try {
      await runGo(['build', ...flags, '-o', temporary, BINARIES[name].package], { cwd, env, signal });
      const { size } = await stat(temporary);
      await rename(temporary, join(directory, name));
      log(`  ${name}: built in ${elapsed()} (${Math.round(size / 1e6)} MB)`);
    } finally {
      clearInterval(progress);
      await rm(temporary, { force: true });
    }
  }
}
