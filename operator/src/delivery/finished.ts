import { finalizers } from '@rollcall/crds/kinds.ts';
import type { Decision } from '../runtime/decision.ts';
import { isExtraGone, removeExtra } from './extra-deployment.ts';
import { patchFinalizers } from './preparation.ts';
import type { JobSnapshot } from './snapshot.ts';
import { clusterOf, readyCount, surroundingsOf } from './view.ts';

/** Nobody waits for what is left. */
const LOOK_MS = 10_000;

/**
 * A job that has ended: what is left of it goes, and then the finalizer. Something is left where a rollback could not do
 * without it, or where an operator that no longer led made it late.
 */
export function planFinished(snapshot: JobSnapshot): Decision {
  const held = snapshot.job.metadata.finalizers ?? [];
  if (!held.includes(finalizers.delivery)) return { changes: [] };
  const around = surroundingsOf(snapshot);
  if (!isExtraGone({ around })) {
    return { changes: isMissed(snapshot) ? [] : removeExtra({ around }), requeueAfterMs: LOOK_MS };
  }
  const kept = held.filter((finalizer) => finalizer !== finalizers.delivery);
  return { changes: [patchFinalizers(snapshot, kept)] };
}

/** Whether the Deployment has too few pods of its own to do without those that are left. */
function isMissed(snapshot: JobSnapshot): boolean {
  const cluster = clusterOf(snapshot);
  if (cluster === undefined || readyCount(cluster.extra?.pods) === 0) return false;
  const own = cluster.replicaSets.reduce((sum, group) => sum + readyCount(group), 0);
  return own < (cluster.deployment.spec.replicas ?? 1);
}
