import type { JobView } from '../view.ts';
import { claimWorkload } from '../workload.ts';
import { isOver, type StagePlan, untilMs } from './strategy.ts';
import { lateFailure } from './upkeep.ts';

/**
 * Whether somebody has taken the claim of a job away that goes forward, as tools do that replace what they apply. On the way back
 * it is renewed with the first write.
 */
export function isUnclaimed({ claim, cluster, failure, status }: JobView): boolean {
  return claim === 'none' && cluster !== undefined && failure === undefined && status.stage !== 'Finishing';
}

/** In place of what the stage wants: without the claim nothing else is written. */
export function planClaiming(view: JobView): StagePlan {
  const { cluster, job, policy, status } = view;
  const seconds = policy.rolling.progressDeadlineSeconds;
  const message = `Claims Deployment ${status.workload?.name} again`;
  if (cluster === undefined) return { message };
  if (isOver(view, seconds)) return { message, failure: lateFailure(message, seconds) };
  return { message, changes: claimWorkload(cluster.deployment, job), lookAgainMs: untilMs(view, seconds) };
}
