import { finalizers } from '@rollcall/crds/kinds.ts';
import type { Change, Decision } from '../runtime/decision.ts';
import { isExtraGone, removeExtra } from './extra-deployment.ts';
import { endedEarly } from './failures.ts';
import { patchFinalizers } from './preparation.ts';
import { reconstructState } from './saved-state.ts';
import type { JobSnapshot } from './snapshot.ts';
import { handBack } from './strategies/promotion.ts';
import { isExtraInUse } from './traffic/in-use.ts';
import { clusterOf, readyCount, surroundingsOf, viewJob } from './view.ts';

/** Nobody waits for what is left. */
const LOOK_MS = 10_000;

/**
 * A job that has ended: what is left of it goes, and then the finalizer. Something is left where a rollback could not do
 * without it, or where an operator that no longer led made it late.
 */
export function planFinished(snapshot: JobSnapshot): Decision {
  const held = snapshot.job.metadata.finalizers ?? [];
  if (!held.includes(finalizers.delivery)) return { changes: [] };
  const late = lateHandingBack(snapshot);
  if (late.length > 0) return { changes: late, requeueAfterMs: LOOK_MS };
  const around = surroundingsOf(snapshot);
  if (!isExtraGone({ around })) {
    return { changes: isMissed(snapshot) ? [] : removeExtra({ around }), requeueAfterMs: LOOK_MS };
  }
  const kept = held.filter((finalizer) => finalizer !== finalizers.delivery);
  return { changes: [patchFinalizers(snapshot, kept)] };
}

/** What the API server had refused to the end. A job that runs by now may have set what looks like the same. */
function lateHandingBack(snapshot: JobSnapshot): readonly Change[] {
  const { job, saved, queue } = snapshot;
  if (job.status === undefined || !endedEarly(job.status.failure) || queue.ahead !== undefined) return [];
  return handBack(viewJob(snapshot, saved ?? reconstructState(snapshot), job.status));
}

/** Whether the Deployment has too few pods of its own to do without those that are left. */
function isMissed(snapshot: JobSnapshot): boolean {
  const cluster = clusterOf(snapshot);
  if (cluster === undefined || readyCount(cluster.extra?.pods) === 0) return false;
  if (isExtraInUse(cluster)) return true;
  const own = cluster.replicaSets.reduce((sum, group) => sum + readyCount(group), 0);
  return own < (cluster.deployment.spec.replicas ?? 1);
}
