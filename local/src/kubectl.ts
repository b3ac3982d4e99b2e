import { dirname, join } from 'node:path';
import { type RunOptions, runProgram } from './processes.ts';

export interface KubectlTarget {
  /** Path of the executable. */
  readonly kubectl: string;
  readonly kubeconfigPath: string;
}

export type KubectlRun = Pick<RunOptions, 'stdin' | 'signal'>;

/**
 * Runs kubectl against one cluster only, whatever KUBECONFIG says, and returns what it prints.
 *
 * @throws with what it says on standard error when it ends with anything but 0.
 */
export function runKubectl({ kubectl, kubeconfigPath }: KubectlTarget, args: readonly string[], run: KubectlRun = {}) {
  const env = {
    PATH: process.env['PATH'],
    KUBECONFIG: kubeconfigPath,
    KUBECACHEDIR: join(dirname(kubeconfigPath), 'kubectl-cache'),
  };
  return runProgram([kubectl, ...args], { ...run, env });
}

/**
 * Applies the custom resource definitions of `crds/` and waits until the API server serves them.
 */
export async function installCrds(target: KubectlTarget, signal?: AbortSignal): Promise<void> {
  const files = ['-f', join(import.meta.dirname, '..', '..', 'crds', '*.yaml')];
  const how = ['--server-side', '--force-conflicts', '--field-manager', 'rollcall-local'];
  await runKubectl(target, ['apply', ...how, ...files], { signal });
  await runKubectl(target, ['wait', '--for=condition=Established', '--timeout=60s', ...files], { signal });
}
