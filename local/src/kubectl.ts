import { spawn } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';

export interface KubectlTarget {
  /** Path of the executable. */
  readonly kubectl: string;
  readonly kubeconfigPath: string;
}

export interface KubectlRun {
  /** Given to kubectl's standard input, for `-f -`. */
  readonly stdin?: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs kubectl against one cluster only, whatever KUBECONFIG says, and returns what it prints.
 *
 * @throws with what it says on standard error when it ends with anything but 0.
 */
export async function runKubectl(
  target: KubectlTarget,
  args: readonly string[],
  run: KubectlRun = {},
): Promise<string> {
  const child = spawn(target.kubectl, args, {
    env: {
      PATH: process.env['PATH'],
      KUBECONFIG: target.kubeconfigPath,
      KUBECACHEDIR: join(dirname(target.kubeconfigPath), 'kubectl-cache'),
    },
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(run.signal === undefined ? {} : { signal: run.signal }),
  });
  // kubectl may end before it has read everything; its exit code counts, not the broken pipe.
  child.stdin.on('error', () => undefined);
  child.stdin.end(run.stdin ?? '');
  const closed = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject).once('close', resolve);
  });
  const [stdout, stderr, exitCode] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  if (exitCode !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr.trim()}`);
  return stdout;
}

/** Applies files or directories of manifests server-side, with force where others own fields. */
async function applyManifests(target: KubectlTarget, paths: readonly string[], signal?: AbortSignal): Promise<void> {
  if (paths.length === 0) return;
  const files = paths.flatMap((path) => ['-f', path]);
  const manager = ['--server-side', '--force-conflicts', '--field-manager', 'rollcall-local'];
  await runKubectl(target, ['apply', ...manager, ...files], { signal });
}

/**
 * Applies the custom resource definitions of `crds/` and waits until the API server serves them.
 */
export async function installCrds(target: KubectlTarget, signal?: AbortSignal): Promise<void> {
  const directory = join(import.meta.dirname, '..', '..', 'crds');
  const files = (await readdir(directory))
    .filter((file) => file.endsWith('.yaml'))
    .map((file) => join(directory, file));
  if (files.length === 0) return;
  await applyManifests(target, files, signal);
  const which = files.flatMap((file) => ['-f', file]);
  await runKubectl(target, ['wait', '--for=condition=Established', '--timeout=60s', ...which], { signal });
}
