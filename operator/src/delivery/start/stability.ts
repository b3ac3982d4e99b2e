import { readyIn } from '../job/context.ts';
import type { ClusterView } from '../job/snapshot.ts';
import { isObserved, progressReason, rolloutOf } from '../workload/rollout.ts';

/** So long pods that are not ready, and may just be coming up, are waited for. */
const GRACE_MS = 5000;

/** What a job that means to keep traffic on the pods that run has to stand on. */
export type Stability =
  /** Enough pods, and none about to go. */
  | { readonly state: 'stable' }
  /**
   * Fewer than are asked for, but nobody replaces them: traffic stays where it is, however few
   * these are.
   */
  | { readonly state: 'degraded' }
  /** Nothing that could carry the traffic while the new version is tried. */
  | { readonly state: 'unavailable'; readonly why: string }
  /** A rollout that may end well. `graceMs`: after which the answer is another. */
  | { readonly state: 'progressing'; readonly why: string; readonly graceMs?: number };

/**
 * Whether there is anything to protect. A way back is wanted most when what runs is broken, so only
 * what goes on by itself is waited for: a rollout of somebody's that its controller counts as
 * progressing, and whose pods may still come up.
 *
 * @param waitedMs for how long the job has waited already.
 * @param isLate whether it may wait no longer.
 */
export function findStability({ deployment, replicaSets }: ClusterView, waitedMs: number, isLate: boolean): Stability {
  const { name } = deployment.metadata;
  const { replicas = 1 } = deployment.spec;
  const { replicas: existing = 0, updatedReplicas = 0 } = deployment.status ?? {};
  const current = replicaSets.find((group) => group.current);
  const moving = { state: 'progressing', why: `Deployment ${name} has a rollout under way` } as const;
  if (current === undefined || !isObserved(deployment)) return moving;
  const ready = readyIn(replicaSets);
  const why = `${ready} of ${replicas} pods of Deployment ${name} are ready`;
  const isFaulty = current.pods.some(({ fault }) => fault !== undefined);
  const isPatient = waitedMs < GRACE_MS && !isLate && !isFaulty;
  if (ready === 0)
    return isPatient ? { state: 'progressing', why, graceMs: GRACE_MS - waitedMs } : { state: 'unavailable', why };
  const isMixed = replicaSets.some((group) => group !== current && group.pods.length > 0);
  const rollout = rolloutOf(deployment);
  if (isMixed || existing !== updatedReplicas || rollout === 'progressing') {
    const isStuck = isFaulty || progressReason(deployment) === 'ProgressDeadlineExceeded';
    if (isStuck) return { state: 'unavailable', why: `Deployment ${name} has a rollout under way that does not go on` };
    return isLate && ready < replicas ? { state: 'unavailable', why } : moving;
  }
  if (rollout === 'complete' && ready >= replicas) return { state: 'stable' };
  return isPatient ? { state: 'progressing', why, graceMs: GRACE_MS - waitedMs } : { state: 'degraded' };
}
