import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { goProblem, proxiesOnly, readGoEnvironment, requiredGoVersion, runGo } from './go-toolchain.ts';
import { cacheKey, MODULES, MODULES_DIRECTORY, readVersions } from './kubernetes-modules.ts';

export interface FindCrdsOptions {
  /** The cache's root; see `defaultCacheDirectory`. */
  readonly cacheDirectory: string;
  /** Takes a line of progress. */
  readonly log: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
}

/** Where the module keeps the definitions of its standard channel. */
const STANDARD = join('config', 'crd', 'standard');

/**
 * Finds the custom resource definitions of the Gateway API: in the cache, else in the pinned Go module, of which they are kept
 * in the cache. Several processes may do so at the same time.
 *
 * @returns the directory with their YAML files.
 * @throws when the module is needed and Go is missing, too old, or fails.
 */
export async function findGatewayApiCrds({ cacheDirectory, log, signal }: FindCrdsOptions): Promise<string> {
  const source = join(MODULES_DIRECTORY, 'gateway-api');
  const goMod = await readFile(join(source, 'go.mod'), 'utf8');
  const goSum = await readFile(join(source, 'go.sum'), 'utf8');
  const version = (await readVersions())['gateway-api'];
  const key = cacheKey({ goMod, goSum, linkerFlags: '', platform: '' });
  const directory = join(cacheDirectory, `gateway-api-${version}-${key}`);
  if (await isThere(directory)) return directory;
  const go = await readGoEnvironment();
  const problem = goProblem(go, requiredGoVersion(goMod));
  if (problem !== undefined) throw new Error(problem);
  log(`Fetching the definitions of the Gateway API ${version}. First run only: they are kept in ${directory}`);
  const env = { GOWORK: 'off', GOPROXY: proxiesOnly(go?.proxy ?? '') };
  const module = `${MODULES['gateway-api'].path}@v${version}`;
  // Run beside go.sum, so that what comes is what was pinned.
  const downloaded: { readonly Dir: string } = JSON.parse(
    await runGo(['mod', 'download', '-json', module], { cwd: source, env, signal }),
  );
  await mkdir(cacheDirectory, { recursive: true });
  const temporary = await mkdtemp(join(cacheDirectory, '.gateway-api-'));
  try {
    await copyDefinitions(join(downloaded.Dir, STANDARD), temporary);
    await rename(temporary, directory);
  } catch (err) {
    await rm(temporary, { recursive: true, force: true });
    // Another process was faster.
    if (!(await isThere(directory))) throw err;
  }
  return directory;
}

/** File by file: those of the module cache are read-only, and so would be a copy of their directory. */
async function copyDefinitions(from: string, to: string): Promise<void> {
  for (const name of await readdir(from)) if (name.endsWith('.yaml')) await cp(join(from, name), join(to, name));
}

async function isThere(directory: string): Promise<boolean> {
  const names = await readdir(directory).catch(() => []);
  return names.length > 0;
}
