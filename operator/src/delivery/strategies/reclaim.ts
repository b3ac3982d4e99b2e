import { unclaimedForMs } from '../job/conditions.ts';
import type { JobContext } from '../job/context.ts';
import { claimWorkload } from '../workload/changes.ts';
import type { StagePlan } from './strategy.ts';
import { lateFailure } from './upkeep.ts';

/**
 * Whether somebody has removed the claim of a job that goes forward, as tools do that replace what
 * they apply. On the way back it is renewed with the first write.
 */
export function isUnclaimed({ claim, cluster, failure, status }: JobContext): boolean {
  return claim === 'none' && cluster !== undefined && failure === undefined && status.stage !== 'Finishing';
}

/**
 * Instead of what the stage wants: without the claim nothing else is written. The deadline begins
 * when the claim is first missed: the stage may have lasted for long.
 */
export function planReclaim(context: JobContext): StagePlan {
  const { cluster, job, nowMs, policy, status } = context;
  const seconds = policy.rolling.progressDeadlineSeconds;
  const message = `Claims Deployment ${status.workload?.name} again`;
  if (cluster === undefined) return { message };
  const leftMs = seconds * 1000 - unclaimedForMs(status, nowMs);
  if (leftMs <= 0) return { message, failure: lateFailure(message, seconds) };
  return { message, changes: claimWorkload(cluster.deployment, job), requeueAtMs: nowMs + leftMs };
}
