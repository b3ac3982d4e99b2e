import { randomBytes } from 'node:crypto';
import { type KubectlRun, type KubectlTarget, runKubectl } from '@rollcall/local/kubectl.ts';
import { inject } from 'vitest';

/** A namespace of one test file's own. */
export interface TestNamespace {
  readonly name: string;
  readonly kubeconfigPath: string;
  /**
   * Runs kubectl in the namespace and returns what it prints; throws with what it says when it
   * fails.
   */
  kubectl(args: readonly string[], run?: KubectlRun): Promise<string>;
}

/** The shared API server of an integration test run. */
function sharedCluster(): KubectlTarget {
  return { kubectl: inject('kubernetesBinaries').kubectl, kubeconfigPath: inject('kubeconfig') };
}

export interface KubectlOptions extends KubectlRun {
  /** Another cluster than the shared one. */
  readonly kubeconfig?: string;
}

/**
 * Runs kubectl, against the shared API server by default; throws with what it says when it fails.
 */
export function kubectl(args: readonly string[], { kubeconfig, ...run }: KubectlOptions = {}): Promise<string> {
  const shared = sharedCluster();
  return runKubectl({ ...shared, kubeconfigPath: kubeconfig ?? shared.kubeconfigPath }, args, run);
}

/**
 * Creates a namespace with a name that nobody else has. It stays until the API server goes, after
 * the last test: deleting one takes Kubernetes more than a hundred requests.
 *
 * @param prefix says in listings and logs whose it is.
 */
export async function createNamespace(prefix = 'test'): Promise<TestNamespace> {
  const name = `${prefix}-${randomBytes(5).toString('hex')}`;
  await kubectl(['create', 'namespace', name]);
  return {
    name,
    kubeconfigPath: sharedCluster().kubeconfigPath,
    kubectl: (args, run) => kubectl(['--namespace', name, ...args], run),
  };
}
