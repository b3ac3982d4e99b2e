import { hash } from 'node:crypto';

/** Of a pod: the ReplicaSet that it belongs to, also part of its name. */
export const HASH_LABEL = 'pod-template-hash';
/** Of a Deployment and of a ReplicaSet; the newest has the highest. */
export const REVISION_ANNOTATION = 'deployment.kubernetes.io/revision';

const suffixes = { BlueGreen: '-green', Canary: '-canary' } as const;

/**
 * A pod is named `<deployment>-<10 of hash>-<5 of random>`, and its host by the first 63 characters
 * of that.
 */
const DEPLOYMENT_NAME_LIMIT = 63 - 11 - 6;
const SERVICE_NAME_LIMIT = 63;

/** The Deployment beside the user's that a job of this strategy makes. */
export function extraDeploymentName(deploymentName: string, strategy: keyof typeof suffixes): string {
  return withSuffix(deploymentName, suffixes[strategy], DEPLOYMENT_NAME_LIMIT);
}

/** Both names that {@link extraDeploymentName} may give. */
export function extraDeploymentNames(deploymentName: string): readonly string[] {
  return [extraDeploymentName(deploymentName, 'BlueGreen'), extraDeploymentName(deploymentName, 'Canary')];
}

/**
 * The Service that routes send a canary's share to, beside the Service that has all traffic else.
 */
export function canaryServiceName(serviceName: string): string {
  return withSuffix(serviceName, suffixes.Canary, SERVICE_NAME_LIMIT);
}

/**
 * A name that is too long gives up its end for a digest of the whole, so that no two names become
 * one.
 */
function withSuffix(name: string, suffix: string, limit: number): string {
  if (name.length + suffix.length <= limit) return name + suffix;
  const digest = hash('sha256', name, 'hex').slice(0, 8);
  return `${name.slice(0, limit - suffix.length - digest.length - 1)}-${digest}${suffix}`;
}
