import { finalizers } from '@rollcall/crds/kinds.ts';
import { type Change, type Decision, independently } from '../../runtime/decision.ts';
import { patchFinalizers } from '../start/preparing-stage.ts';
import { handBack } from '../strategies/shared-stages.ts';
import { isExtraInUse } from '../traffic/in-use.ts';
import { releaseServices } from '../traffic/selector.ts';
import { restoreLate, unclaimWorkload } from '../workload/changes.ts';
import { claimInTheWay } from '../workload/claim.ts';
import { isExtraGone, removeExtra } from '../workload/extra-deployment.ts';
import { buildContext, clusterOf, readyCount, readyIn, surroundingsOf } from './context.ts';
import { endedEarly } from './failures.ts';
import { reconstructState } from './saved-state.ts';
import type { JobSnapshot } from './snapshot.ts';

/** Nobody waits for what is left. */
const RECHECK_MS = 10_000;

/**
 * A job that has ended: what is left of it goes, and then the finalizer. Something is left where a
 * rollback could not do without it, or where an operator that no longer led made it late.
 */
export function planCleanup(snapshot: JobSnapshot): Decision {
  const held = snapshot.job.metadata.finalizers ?? [];
  if (!held.includes(finalizers.delivery)) return { changes: [] };
  const late = lateHandingBack(snapshot);
  if (late.length > 0) return { changes: late, requeueAfterMs: RECHECK_MS };
  const around = surroundingsOf(snapshot);
  if (!isExtraGone({ around })) {
    return { changes: isMissed(snapshot) ? [] : removeExtra({ around }), requeueAfterMs: RECHECK_MS };
  }
  // What it has to hand back has to wait.
  if (endedEarly(snapshot.job.status?.failure) && isOthersTurn(snapshot)) {
    return { changes: [], requeueAfterMs: RECHECK_MS };
  }
  const kept = held.filter((finalizer) => finalizer !== finalizers.delivery);
  return { changes: [patchFinalizers(snapshot, kept)] };
}

/**
 * What the API server had refused to the end; of a job that ended before it had changed anything,
 * the claim.
 */
function lateHandingBack(snapshot: JobSnapshot): readonly Change[] {
  const { job, saved } = snapshot;
  if (job.status === undefined) return [];
  const cluster = clusterOf(snapshot);
  if (!endedEarly(job.status.failure)) return cluster === undefined ? [] : unclaimWorkload(cluster.deployment, job);
  if (isOthersTurn(snapshot)) return [];
  const context = buildContext(snapshot, saved ?? reconstructState(snapshot), job.status);
  const isPinned = releaseServices(context).length > 0;
  return independently([...handBack(context), ...(isPinned ? [] : restoreLate(context))]);
}

/** Whether a job runs by now that may have set what resembles this one's. */
function isOthersTurn({ job, queue, workload }: JobSnapshot): boolean {
  return queue.ahead !== undefined || (workload.found === 'one' && claimInTheWay(workload.cluster, job) !== undefined);
}

/** Whether the Deployment has too few pods of its own to do without the rest of the extra ones. */
function isMissed(snapshot: JobSnapshot): boolean {
  const cluster = clusterOf(snapshot);
  if (cluster === undefined || readyCount(cluster.extra?.pods) === 0) return false;
  if (isExtraInUse(cluster)) return true;
  const own = readyIn(cluster.replicaSets);
  const { replicas = 1 } = cluster.deployment.spec;
  return own < Math.min(replicas, snapshot.saved?.deployment.short?.ready ?? replicas);
}
