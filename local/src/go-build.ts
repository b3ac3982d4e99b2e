import { rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { findExecutable, isExecutable } from './executables.ts';
import { withLock } from './file-lock.ts';
import { runProgram } from './processes.ts';

/** What Go is needed for, and what does without it; both for the reader of an error. */
export interface GoUse {
  /** A sentence's beginning, such as `Traefik is built from source`. */
  readonly purpose: string;
  /** Its end, after "Install Go, or". */
  readonly instead: string;
}

export const KUBERNETES_USE: GoUse = {
  purpose: 'The Kubernetes binaries are built from source',
  instead: 'set KUBEBUILDER_ASSETS to a directory that holds the binaries',
};

/** What to do where there is no Go, or undefined. That it is too old it says itself. */
export async function findGoProblem({ purpose, instead }: GoUse = KUBERNETES_USE): Promise<string | undefined> {
  if ((await findExecutable('go')) !== undefined) return undefined;
  return `${purpose} and Go is not installed. Install it (https://go.dev/doc/install), or ${instead}.`;
}

/** Programs of one Go module that are built once and kept. */
export interface GoBuild extends GoUse {
  /** Such as `etcd 3.7.3`; for the log. */
  readonly title: string;
  /** Folder with the go.mod and go.sum; nothing is written there. */
  readonly source: string;
  /** In a cache. Whatever changes the programs must change it. */
  readonly directory: string;
  /** What `go build` is given, by the name of the executable. */
  readonly packages: Readonly<Record<string, string>>;
  readonly linkerFlags: string;
}

export interface GoBuildOptions {
  /** Called with a line of progress. Silent when nothing has to be built. */
  readonly log: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
}

const PROGRESS_INTERVAL_MS = 15_000;
const TRIES = 4;
const RETRY_PAUSE_MS = 2000;

/**
 * Builds what is not there yet. Several processes may do so at the same time: one builds, the
 * others wait for it.
 *
 * @throws when Go is missing or fails, and the signal's reason when it was aborted.
 */
export async function ensureBuilt(build: GoBuild, options: GoBuildOptions): Promise<void> {
  const { log, signal } = options;
  if ((await notYetBuilt(build)).length === 0) return;
  const started = performance.now();
  let tellAt = started;
  const waiting = (heldBy: number): void => {
    if (performance.now() < tellAt) return;
    log(`Waiting for process ${heldBy}, which builds ${build.title}: ${elapsed(started)} so far`);
    tellAt += PROGRESS_INTERVAL_MS;
  };
  await withLock(build.directory, { signal, waiting }, () => buildAll(build, options));
}

/** The names of the programs that have still to be built. */
export async function notYetBuilt({ directory, packages }: GoBuild): Promise<string[]> {
  const missing: string[] = [];
  for (const name of Object.keys(packages)) if (!(await isExecutable(join(directory, name)))) missing.push(name);
  return missing;
}

async function buildAll(build: GoBuild, { log, signal }: GoBuildOptions): Promise<void> {
  const { title, source, directory, packages, linkerFlags } = build;
  const names = await notYetBuilt(build);
  if (names.length === 0) return;
  const problem = await findGoProblem(build);
  if (problem !== undefined) throw new Error(problem);
  const env = { ...process.env, CGO_ENABLED: '0', GOWORK: 'off' };
  log(`Building ${names.join(', ')} (${title}) from source. First run only: the result is kept in ${directory}`);
  for (const name of names) {
    const temporary = join(directory, `.${name}.${process.pid}`);
    const flags = ['-mod=readonly', '-buildvcs=false', '-trimpath', '-ldflags', linkerFlags];
    const started = performance.now();
    const progress = setInterval(
      () => log(`  ${name}: still building after ${elapsed(started)}`),
      PROGRESS_INTERVAL_MS,
    );
    try {
      const command = ['go', 'build', ...flags, '-o', temporary, packages[name] ?? ''];
      await overNetwork(() => runProgram(command, { cwd: source, env, signal }), { log, signal });
      const { size } = await stat(temporary);
      await rename(temporary, join(directory, name));
      log(`  ${name}: built in ${elapsed(started)} (${Math.round(size / 1e6)} MB)`);
    } finally {
      clearInterval(progress);
      await rm(temporary, { force: true });
    }
  }
}

/** Go keeps what has come, so that the next try has less to fetch; by itself it tries once. */
async function overNetwork(run: () => Promise<unknown>, { log, signal }: GoBuildOptions): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      await run();
      return;
    } catch (err) {
      if (tries === TRIES || signal?.aborted === true || !isOfNetwork(errorMessage(err))) throw err;
      log(`  a module did not come, trying once more: ${errorMessage(err).split('\n').at(-1)}`);
      await sleep(RETRY_PAUSE_MS * tries, signal);
    }
  }
}

/** Pure. Whether Go failed for what may be better in a moment. */
function isOfNetwork(output: string): boolean {
  return /handshake timeout|i\/o timeout|deadline exceeded|connection reset|unexpected EOF|: EOF|: 50[234] /i.test(
    output,
  );
}

function elapsed(since: number): string {
  return `${Math.round((performance.now() - since) / 1000)} s`;
}
