import { tmpdir } from 'node:os';
import { findExecutable } from './executables.ts';
import { runProgram } from './processes.ts';

/** What `go env` says about the toolchain, as far as it matters here. */
export interface GoEnvironment {
  /** For instance `go1.26.8`. */
  readonly version: string;
  /** The setting GOTOOLCHAIN: `local` forbids Go to fetch a newer toolchain by itself. */
  readonly toolchain: string;
}

/** Reads the Go environment, or returns undefined when there is no `go` on the PATH. */
export async function readGoEnvironment(): Promise<GoEnvironment | undefined> {
  if ((await findExecutable('go')) === undefined) return undefined;
  // Outside any module: inside one, Go would already act on the go.mod's own version line.
  const output = await runProgram(['go', 'env', '-json', 'GOVERSION', 'GOTOOLCHAIN'], { cwd: tmpdir() });
  const values: Partial<Record<string, string>> = JSON.parse(output);
  return { version: values['GOVERSION'] ?? '', toolchain: values['GOTOOLCHAIN'] ?? '' };
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
 * Why the Go here cannot build what this go.mod asks for, or undefined when it can.
 */
export async function findGoProblem(goMod: string, use?: GoUse): Promise<string | undefined> {
  return goProblem(await readGoEnvironment(), requiredGoVersion(goMod), use);
}

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
