import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { constants, getPriority, tmpdir } from 'node:os';
import { findExecutable } from './executables.ts';
import { deathSignalPrefix } from './processes.ts';

/** What `go env` says about the toolchain, as far as it matters here. */
export interface GoEnvironment {
  /** For instance `go1.26.8`. */
  readonly version: string;
  /** The setting GOTOOLCHAIN: `local` forbids Go to fetch a newer toolchain by itself. */
  readonly toolchain: string;
  readonly proxy: string;
}

/** Reads the Go environment, or returns undefined when there is no `go` on the PATH. */
export async function readGoEnvironment(): Promise<GoEnvironment | undefined> {
  if ((await findExecutable('go')) === undefined) return undefined;
  // Outside any module: inside one, Go would already act on the go.mod's own version line.
  const output = await runGo(['env', '-json', 'GOVERSION', 'GOTOOLCHAIN', 'GOPROXY'], { cwd: tmpdir() });
  const values: Partial<Record<string, string>> = JSON.parse(output);
  return {
    version: values['GOVERSION'] ?? '',
    toolchain: values['GOTOOLCHAIN'] ?? '',
    proxy: values['GOPROXY'] ?? '',
  };
}

/** The version in a go.mod's `go` line: the oldest Go that can build it. */
export function requiredGoVersion(goMod: string): string {
  const version = /^go (\d+\.\d+(?:\.\d+)?)/m.exec(goMod)?.[1];
  if (version === undefined) throw new Error('go.mod has no go line');
  return version;
}

/** What Go is needed for, and what does without it; both for the reader of an error. */
export interface GoUse {
  /** A sentence's beginning, such as `Traefik is built from source`. */
  readonly purpose: string;
  /** Its end, after "Install Go ..., or". */
  readonly instead: string;
}

export const KUBERNETES_USE: GoUse = {
  purpose: 'The Kubernetes binaries are built from source',
  instead: 'set KUBEBUILDER_ASSETS to a directory that holds the binaries',
};

/**
 * Why this Go cannot build a module that requires `required`, or undefined when it can. Since 1.21
 * Go fetches a newer toolchain by itself unless GOTOOLCHAIN says `local`.
 */
export function goProblem(
  go: GoEnvironment | undefined,
  required: string,
  { purpose, instead }: GoUse = KUBERNETES_USE,
): string | undefined {
  const remedy = `Install Go ${required} or newer (https://go.dev/doc/install), or ${instead}.`;
  if (go === undefined) return `${purpose} and Go is not installed. ${remedy}`;
  const found = go.version.replace(/^go/, '');
  if (!isOlder(found, required)) return undefined;
  if (!isOlder(found, '1.21') && !go.toolchain.startsWith('local')) return undefined;
  return `${purpose} and Go ${found} is too old for that. ${remedy}`;
}

function isOlder(version: string, required: string): boolean {
  const have = version.split(/[^\d]+/).map(Number);
  const want = required.split('.').map(Number);
  for (const [index, part] of want.entries()) {
    const own = have[index] ?? 0;
    if (own !== part) return own < part;
  }
  return false;
}

/**
 * GOPROXY without its `direct` entries: with them, a module that a proxy does not have makes Go
 * contact the host in the module's path. Where nothing else is configured the value stays as it is.
 */
export function proxiesOnly(goproxy: string): string {
  const parts = goproxy.split(/([,|])/);
  let kept = '';
  for (let index = 0; index < parts.length; index += 2) {
    const proxy = parts[index]?.trim() ?? '';
    if (proxy === '' || proxy === 'direct') continue;
    kept += kept === '' ? proxy : `${parts[index - 1] ?? ','}${proxy}`;
  }
  return kept === '' ? goproxy : kept;
}

export interface GoRunOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs `go` and returns its standard output.
 *
 * @throws with the end of Go's standard error when it fails, with the signal's reason when it was
 * aborted.
 */
export async function runGo(args: readonly string[], { cwd, env = {}, signal }: GoRunOptions): Promise<string> {
  signal?.throwIfAborted();
  const [command = '', ...rest] = [...(await deathSignalPrefix()), 'go', ...args];
  // Its own process group, so that an abort also ends the compilers that `go` has started.
  const child = spawn(command, rest, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  if (child.pid !== undefined) void keepNiceness(child.pid);
  const abort = (): void => {
    if (child.pid !== undefined) process.kill(-child.pid, constants.signals.SIGTERM);
  };
  signal?.addEventListener('abort', abort, { once: true });
  const output = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output.out += chunk));
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (output.err += chunk));
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  child.once('error', reject).once('close', resolve);
  try {
    const code = await promise;
    signal?.throwIfAborted();
    if (code === 0) return output.out;
    throw new Error(`go ${args.join(' ')} failed:\n${output.err.trim().split('\n').slice(-20).join('\n')}`);
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}

/**
 * Where the kernel shares the processors out among sessions first, niceness counts inside a session
 * only: a build that is to be in nobody's way has to say so for the session of its own.
 */
async function keepNiceness(pid: number): Promise<void> {
  const niceness = getPriority();
  if (niceness <= 0) return;
  // Not there where the kernel does not.
  await writeFile(`/proc/${pid}/autogroup`, String(niceness)).catch(() => undefined);
}
