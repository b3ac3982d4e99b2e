import type { Deployment } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { SettledPolicy } from '../job/snapshot.ts';

/** How far the Deployment's controller is with what was last asked of it. */
export type Rollout = 'complete' | 'progressing' | 'stalled';

/**
 * Reasons of the condition Progressing with which the controller itself watches the progress
 * deadline.
 */
const progressReasons: ReadonlySet<string | undefined> = new Set([
  'NewReplicaSetCreated',
  'FoundNewReplicaSet',
  'ReplicaSetUpdated',
]);

/** Whether the Deployment's controller has seen what was last asked of it. */
export function isObserved({ metadata, status }: Deployment): boolean {
  return (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0);
}

/**
 * How the Deployment's controller sees the progress of its rollout, in the word of the condition
 * Progressing.
 */
export function progressReason({ status }: Deployment): string | undefined {
  return status?.conditions?.find(({ type }) => type === 'Progressing')?.reason;
}

/**
 * Stalled may also be what has only just begun, or what is reported of the rollout before: it
 * counts after a deadline only.
 */
export function rolloutOf(deployment: Deployment): Rollout {
  const { spec, status } = deployment;
  const { replicas = 1 } = spec;
  if (!isObserved(deployment)) return 'stalled';
  const { updatedReplicas = 0, availableReplicas = 0, replicas: existing = 0 } = status ?? {};
  if (updatedReplicas === replicas && existing === updatedReplicas && availableReplicas >= replicas) return 'complete';
  return progressReasons.has(progressReason(deployment)) ? 'progressing' : 'stalled';
}

/**
 * When the Deployment's controller last saw progress of the rollout that it follows, in
 * milliseconds since 1970. 0 where it follows none, or does not say.
 */
export function progressedAtMs(deployment: Deployment): number {
  const progressing = deployment.status?.conditions?.find(({ type }) => type === 'Progressing');
  if (rolloutOf(deployment) !== 'progressing' || progressing?.lastUpdateTime === undefined) return 0;
  return Date.parse(progressing.lastUpdateTime);
}

/** What keeps a Deployment's controller from making pods, such as a quota. */
export function complaintOf({ status }: Deployment): string | undefined {
  return status?.conditions?.find(({ type, status }) => type === 'ReplicaFailure' && status === 'True')?.message;
}

/** How many of so many pods a number or a percentage such as 25% is. */
export function podsOf(share: number | string, replicas: number, round: (pods: number) => number): number {
  return typeof share === 'number' ? share : round((replicas * Number.parseInt(share, 10)) / 100);
}

/** Kubernetes' own default. */
export const DEFAULT_DEADLINE_SECONDS = 600;
/** As long as a policy may say; what is longer is the Deployment's own. */
export const MOST_DEADLINE_SECONDS = 86_400;

/** The API server wants it to be longer than a pod must have been ready to count. */
export function deadlineSeconds({ rolling }: SettledPolicy, { spec }: Deployment): number {
  const { progressDeadlineSeconds: own = DEFAULT_DEADLINE_SECONDS, minReadySeconds = 0 } = spec;
  const wanted = rolling.progressDeadlineSeconds;
  return wanted === MOST_DEADLINE_SECONDS && own > wanted ? own : Math.max(wanted, minReadySeconds + 1);
}
