import { randomBytes } from 'node:crypto';
import { runKubectl } from '@rollcall/local/kubectl.ts';
import { inject } from 'vitest';
import type { ClusterFacts } from './cluster.ts';

/** Whether there is no cluster, so that the files' tests are to be skipped. */
export const noCluster = typeof inject('cluster') === 'string';

/** Whether the cluster is no node of our own: its network cannot be reached from here. */
export const noNode = noCluster || sharedCluster().kind !== 'node';

/** Whether the cluster lacks Rollcall's own image. */
export const noRollcallImage = noCluster || sharedCluster().rollcallImage === undefined;

/** Whether there is neither an Ingress controller nor a Gateway to be had. */
export const noTraefik = noCluster || sharedCluster().traefikImage === undefined;

/** Whether what an Ingress controller serves cannot be reached from here. */
export const noIngress = noTraefik || sharedCluster().nodeAddress === undefined;

/** @throws when there is no cluster. */
export function sharedCluster(): ClusterFacts {
  const cluster = inject('cluster');
  if (typeof cluster === 'string') throw new Error(cluster);
  return cluster;
}

/** A namespace of one test file's own on the shared cluster, or on another. */
export interface ClusterNamespace extends AsyncDisposable {
  readonly name: string;
  /**
   * Runs kubectl in the namespace and returns what it prints.
   *
   * @throws with what it says when it fails.
   */
  kubectl(...args: readonly string[]): Promise<string>;
  /** Applies manifests. */
  apply(...manifests: readonly object[]): Promise<void>;
}

const ROLLOUT_TIMEOUT = '--timeout=180s';

export async function createClusterNamespace(
  target: Pick<ClusterFacts, 'kubectl' | 'kubeconfigPath'> = sharedCluster(),
): Promise<ClusterNamespace> {
  const name = `e2e-${randomBytes(5).toString('hex')}`;
  await runKubectl(target, ['create', 'namespace', name]);
  const kubectl = (args: readonly string[], stdin = ''): Promise<string> =>
    runKubectl(target, ['--namespace', name, ...args], { stdin });
  return {
    name,
    kubectl: (...args) => kubectl(args),
    apply: async (...items) => {
      await kubectl(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    },
    [Symbol.asyncDispose]: async () => {
      await kubectl(['delete', 'namespace', name, '--wait=false']);
    },
  };
}

/** Waits until the rollout of a Deployment is complete. */
export async function waitForRollout(namespace: ClusterNamespace, name: string): Promise<void> {
  await namespace.kubectl('rollout', 'status', ROLLOUT_TIMEOUT, `deployment/${name}`);
}
