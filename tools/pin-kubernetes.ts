// `npm run kubernetes:pin`: makes local/kubernetes/*/go.mod and go.sum agree with
// local/kubernetes/versions.json.
import { copyFile, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findGoProblem } from '../local/src/go-build.ts';
import {
  MODULES,
  MODULES_DIRECTORY,
  type ModuleName,
  packagesOf,
  stagingVersion,
  versions,
} from '../local/src/kubernetes-modules.ts';
import { runProgram } from '../local/src/processes.ts';

/** What `go mod download -json` and `go mod edit -json` say, as far as it is read here. */
interface Downloaded {
  readonly GoMod: string;
}
interface ModuleFile {
  readonly Go: string;
  readonly Require?: readonly { readonly Path: string; readonly Version: string }[];
}

const problem = await findGoProblem();
if (problem !== undefined) throw new Error(problem);
const env = { ...process.env, GOWORK: 'off', GOFLAGS: '-mod=mod' };

const directory = await mkdtemp(join(tmpdir(), 'rollcall-pin-'));
try {
  for (const module of Object.keys(MODULES) as ModuleName[]) if (module !== 'pause') await pin(module);
} finally {
  await rm(directory, { recursive: true });
}

/**
 * Writes the module's files anew in a directory of their own, so that a failure leaves the old
 * ones.
 */
async function pin(module: Exclude<ModuleName, 'pause'>): Promise<void> {
  const { path, name } = MODULES[module];
  const version = versions[module];
  const cwd = await mkdtemp(join(directory, `${module}-`));
  const run = (...args: string[]): Promise<string> => runProgram(['go', ...args], { cwd, env });
  console.log(`${path} v${version}`);
  const { GoMod }: Downloaded = JSON.parse(await run('mod', 'download', '-json', `${path}@v${version}`));
  const upstream: ModuleFile = JSON.parse(await run('mod', 'edit', '-json', GoMod));
  await run('mod', 'init', name);
  const edits = [
    `-go=${upstream.Go}`,
    `-require=${path}@v${version}`,
    ...packagesOf(module).map((tool) => `-tool=${tool}`),
    ...(module === 'kubernetes' ? stagingReplacements(upstream) : []),
  ];
  await run('mod', 'edit', ...edits);
  // A program of our own: what it imports is required.
  const folder = join(MODULES_DIRECTORY, module);
  const sources = (await readdir(folder)).filter((name) => name.endsWith('.go'));
  for (const name of sources) await copyFile(join(folder, name), join(cwd, name));
  // Tidying drops what no package is built of.
  if (packagesOf(module).length > 0 || sources.length > 0) await run('mod', 'tidy');
  else await run('mod', 'download', path);
  for (const file of ['go.mod', 'go.sum']) await copyFile(join(cwd, file), join(folder, file));
}

/**
 * Kubernetes' go.mod requires its staging modules as v0.0.0, which only exists in its own
 * repository.
 */
function stagingReplacements(upstream: ModuleFile): string[] {
  const staging = (upstream.Require ?? []).filter((required) => required.Version === 'v0.0.0');
  return staging.map(({ Path }) => `-replace=${Path}=${Path}@v${stagingVersion(versions.kubernetes)}`);
}
