import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheDirectory } from './cache-directory.ts';
import { isExecutable } from './executables.ts';
import { ensureBuilt, type GoBuildOptions, type GoUse, KUBERNETES_USE } from './go-build.ts';
import {
  BINARIES,
  type BinaryName,
  cacheKey,
  linkerFlags,
  MODULES_DIRECTORY,
  type ModuleName,
  versions,
} from './kubernetes-modules.ts';

/** Absolute paths of executables, by name. */
export type KubernetesBinaries<Name extends BinaryName = BinaryName> = Readonly<Record<Name, string>>;

export interface FindBinariesOptions extends GoBuildOptions {
  /** KUBEBUILDER_ASSETS: a directory with binaries that go before the cache. */
  readonly assetsDirectory?: string | undefined;
  /** The cache's root; see `defaultCacheDirectory`. */
  readonly cacheDirectory: string;
  /** What an error says where Go is missing; that Kubernetes needs it by default. */
  readonly use?: GoUse;
}

/**
 * What every set of test assets has; its absence means that KUBEBUILDER_ASSETS points to the wrong
 * directory.
 */
const EXPECTED_ASSETS: readonly BinaryName[] = ['etcd', 'kube-apiserver', 'kubectl'];

/** `$XDG_CACHE_HOME/rollcall/kubernetes`, by default below `~/.cache`. */
export function defaultCacheDirectory(env: NodeJS.ProcessEnv): string {
  return cacheDirectory(env, 'kubernetes');
}

/**
 * Finds the binaries: in KUBEBUILDER_ASSETS, else in the cache, else builds them from the pinned Go
 * modules into the cache (minutes, once). Several processes may do so at the same time: one builds,
 * the others wait for it.
 *
 * @throws when KUBEBUILDER_ASSETS lacks what it must hold, and when something has to be built and
 * Go is missing or fails.
 */
export async function findKubernetesBinaries<Name extends BinaryName>(
  names: readonly Name[],
  options: FindBinariesOptions,
): Promise<KubernetesBinaries<Name>> {
  const found = new Map<BinaryName, string>();
  for (const name of names) {
    const asset = await findAsset(name, options.assetsDirectory);
    if (asset !== undefined) found.set(name, asset);
  }
  // One lock and one directory serve a whole module.
  const missing = names.filter((name) => !found.has(name));
  for (const [module, wanted] of Map.groupBy(missing, (name) => BINARIES[name].module)) {
    const directory = await buildModule(module, wanted, options);
    for (const name of wanted) found.set(name, join(directory, name));
  }
  const paths = Object.fromEntries(found);
  const isComplete = (value: Record<string, string>): value is Record<Name, string> =>
    names.every((name) => name in value);
  if (!isComplete(paths)) throw new Error(`Not all found: ${names.join(', ')}`);
  return paths;
}

async function findAsset(name: BinaryName, directory: string | undefined): Promise<string | undefined> {
  if (directory === undefined || directory === '') return undefined;
  const file = join(directory, name);
  if (await isExecutable(file)) return file;
  if (!EXPECTED_ASSETS.includes(name)) return undefined;
  throw new Error(`KUBEBUILDER_ASSETS is ${directory}, but there is no executable ${name} in it`);
}

/** Builds what is not in the cache yet. @returns the directory with the binaries. */
async function buildModule(
  module: ModuleName,
  names: readonly BinaryName[],
  options: FindBinariesOptions,
): Promise<string> {
  const source = join(MODULES_DIRECTORY, module);
  const flags = linkerFlags(module);
  const key = cacheKey({
    goMod: await readFile(join(source, 'go.mod'), 'utf8'),
    goSum: await readFile(join(source, 'go.sum'), 'utf8'),
    linkerFlags: flags,
    platform: `${process.platform}-${process.arch}`,
    sources: await readSources(source),
  });
  const directory = join(options.cacheDirectory, `${module}-${versions[module]}-${key}`);
  const packages = Object.fromEntries(names.map((name) => [name, BINARIES[name].package]));
  const title = `${module} ${versions[module]}`;
  const { use = KUBERNETES_USE } = options;
  await ensureBuilt({ ...use, title, source, directory, packages, linkerFlags: flags }, options);
  return directory;
}

async function readSources(directory: string): Promise<string[]> {
  const files = (await readdir(directory)).filter((name) => name.endsWith('.go')).sort();
  return Promise.all(files.map((name) => readFile(join(directory, name), 'utf8')));
}
