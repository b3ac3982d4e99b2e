import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { findGoProblem } from '@rollcall/local/go-build.ts';
import { cacheKey, MODULES, MODULES_DIRECTORY, type ModuleName, versions } from '@rollcall/local/kubernetes-modules.ts';
import { runProgram } from '@rollcall/local/processes.ts';

export interface FindCrdsOptions {
  /** The cache's root; see `defaultCacheDirectory`. */
  readonly cacheDirectory: string;
  /** Called with a line of progress. */
  readonly log: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/** Where each module keeps its definitions; of the Gateway API those of the standard channel. */
const FOLDERS = {
  'gateway-api': join('config', 'crd', 'standard'),
  'cert-manager': join('deploy', 'crds'),
  'prometheus-operator': join('example', 'prometheus-operator-crd'),
} as const satisfies Partial<Record<ModuleName, string>>;

/** A project whose custom resources Rollcall or its chart can use. */
export type CrdModule = keyof typeof FOLDERS;

/**
 * Finds the custom resource definitions of a project: in the cache, else in the pinned Go module,
 * of which they are kept in the cache. Several processes may do so at the same time.
 *
 * @returns the directory with their YAML files.
 * @throws when the module is needed and Go is missing or fails.
 */
export async function findPublishedCrds(
  name: CrdModule,
  { cacheDirectory, log, signal }: FindCrdsOptions,
): Promise<string> {
  const source = join(MODULES_DIRECTORY, name);
  const goMod = await readFile(join(source, 'go.mod'), 'utf8');
  const goSum = await readFile(join(source, 'go.sum'), 'utf8');
  const version = versions[name];
  const key = cacheKey({ goMod, goSum, linkerFlags: '', platform: '' });
  const directory = join(cacheDirectory, `${name}-${version}-${key}`);
  if (await isThere(directory)) return directory;
  const problem = await findGoProblem();
  if (problem !== undefined) throw new Error(problem);
  log(`Fetching the definitions of ${name} ${version}. First run only: they are kept in ${directory}`);
  const module = `${MODULES[name].path}@v${version}`;
  // Run beside go.sum, so that what comes is what was pinned.
  const downloaded: { readonly Dir: string } = JSON.parse(
    await runProgram(['go', 'mod', 'download', '-json', module], {
      cwd: source,
      env: { ...process.env, GOWORK: 'off' },
      signal,
    }),
  );
  await mkdir(cacheDirectory, { recursive: true });
  const temporary = await mkdtemp(join(cacheDirectory, `.${name}-`));
  try {
    await copyDefinitions(join(downloaded.Dir, FOLDERS[name]), temporary);
    await rename(temporary, directory);
  } catch (err) {
    await rm(temporary, { recursive: true, force: true });
    // Another process was faster.
    if (!(await isThere(directory))) throw err;
  }
  return directory;
}

/**
 * File by file: those of the module cache are read-only, and so would be a copy of their directory.
 */
async function copyDefinitions(from: string, to: string): Promise<void> {
  for (const name of await readdir(from)) if (name.endsWith('.yaml')) await cp(join(from, name), join(to, name));
}

async function isThere(directory: string): Promise<boolean> {
  const names = await readdir(directory).catch(() => []);
  return names.length > 0;
}
