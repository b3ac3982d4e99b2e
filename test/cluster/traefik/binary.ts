import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { cacheDirectory } from '@rollcall/local/cache-directory.ts';
import { isExecutable } from '@rollcall/local/executables.ts';
import {
  ensureBuilt,
  findGoProblem,
  type GoBuild,
  type GoBuildOptions,
  type GoUse,
  notYetBuilt,
} from '@rollcall/local/go-build.ts';
import { REPOSITORY } from '@rollcall/local/services.ts';
import { errorMessage } from '@rollcall/platform/errors.ts';

const MODULE = 'github.com/traefik/traefik/v3';
const NAME = 'traefik';

const USE: GoUse = {
  purpose: 'Traefik is built from source',
  instead: 'set TRAEFIK_BIN to a static executable of it',
};

/**
 * Where the build module is looked for unless E2E_TRAEFIK_SOURCE says otherwise: in what is handed
 * out beside the repository.
 */
const DEFAULT_SOURCE = join(REPOSITORY, '..', 'shared', 'local-cluster', 'traefik');

export interface TraefikOptions extends GoBuildOptions {
  readonly env: NodeJS.ProcessEnv;
}

/** A static executable of Traefik, or why there is none, in a sentence. */
export type FoundTraefik = { readonly file: string } | { readonly problem: string };

/**
 * Finds Traefik: TRAEFIK_BIN, else in the cache, else built there from a Go module that requires
 * it, which takes ten minutes of processor time, once. Several processes may do so at the same
 * time: one builds, the others wait for it.
 *
 * @throws when TRAEFIK_BIN names no executable, and when Go fails; a signal that aborts the wait is
 * a problem and no failure.
 */
export async function findTraefik({ env, log, signal }: TraefikOptions): Promise<FoundTraefik> {
  const given = env['TRAEFIK_BIN'];
  if (given !== undefined && given !== '') {
    if (!(await isExecutable(given))) throw new Error(`TRAEFIK_BIN is ${given}, which is no executable`);
    return { file: resolve(given) };
  }
  const source = traefikSource(env);
  if (!existsSync(join(source, 'go.mod'))) {
    return {
      problem: `TRAEFIK_BIN is not set, and no Go module to build Traefik from is in ${source} (E2E_TRAEFIK_SOURCE)`,
    };
  }
  const build = await describeBuild(source, cacheDirectory(env, 'traefik'));
  const file = join(build.directory, NAME);
  if ((await notYetBuilt(build)).length === 0) return { file };
  const problem = await findGoProblem(USE);
  if (problem !== undefined) return { problem };
  try {
    await ensureBuilt(build, { log, signal });
  } catch (err) {
    if (signal?.aborted !== true) throw err;
    return { problem: `Traefik was not built in time: ${errorMessage(err)}` };
  }
  return { file };
}

/** Where the build module is, or would be. */
export function traefikSource(env: NodeJS.ProcessEnv): string {
  return resolve(env['E2E_TRAEFIK_SOURCE'] || DEFAULT_SOURCE);
}

async function describeBuild(source: string, cache: string): Promise<GoBuild> {
  const linkerFlags = '-s -w';
  const goMod = await readFile(join(source, 'go.mod'), 'utf8');
  const version = new RegExp(`${MODULE} v(\\S+)`).exec(goMod)?.[1];
  if (version === undefined) throw new Error(`${source} does not require ${MODULE}`);
  const hash = createHash('sha256').update(`${linkerFlags} ${process.platform}-${process.arch}`);
  for (const path of await sourcesIn(source)) {
    const content = await readFile(join(source, path));
    hash.update(`\n${path} ${content.length}\n`).update(content);
  }
  return {
    ...USE,
    title: `Traefik ${version}`,
    source,
    directory: join(cache, `${version}-${hash.digest('hex').slice(0, 16)}`),
    packages: { [NAME]: `${MODULE}/cmd/traefik` },
    linkerFlags,
  };
}

/**
 * What the executable is made of beside the modules that go.sum pins: the module's own files, and
 * those of the ones inside it.
 */
async function sourcesIn(directory: string): Promise<string[]> {
  const paths = await readdir(directory, { recursive: true });
  return paths.filter((path) => /\.go$|(^|\/)go\.(mod|sum)$/.test(path)).sort();
}
