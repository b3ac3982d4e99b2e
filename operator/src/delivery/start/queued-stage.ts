import type { DeliveryJob, DeliveryJobStatus } from '@rollcall/crds/types.gen.ts';
import type { Decision } from '../../runtime/decision.ts';
import { clusterOf } from '../job/context.ts';
import { deleteState } from '../job/saved-state.ts';
import type { JobSnapshot, QueueView } from '../job/snapshot.ts';
import { buildStatus, endStatus, writeStatus } from '../job/status.ts';
import { unclaimWorkload } from '../workload/changes.ts';
import { jobName, supersededMessage } from './messages.ts';
import { strategyOf } from './preflight.ts';
import { begin } from './preparing-stage.ts';
import { isPaused, NAMED_JOBS_LIMIT } from './queue.ts';

/** A job that has not begun: it waits for its turn, is given up, or begins. */
export function planQueued(snapshot: JobSnapshot): Decision {
  const { job, queue } = snapshot;
  if (job.spec.abort || job.metadata.deletionTimestamp !== undefined) {
    return giveUp(snapshot, 'Cancelled', 'Cancelled while it waited for its turn');
  }
  if (queue.supersededBy !== undefined) {
    return giveUp(snapshot, 'Superseded', supersededMessage(queue.supersededBy));
  }
  if (queue.ahead === undefined) return begin(snapshot);
  return { changes: writeStatus(job, waitingStatus(job, snapshot)) };
}

/**
 * A job that prepares, and sees that another has left the queue before it: it returns there, as if
 * it had not begun.
 */
export function returnToQueue(snapshot: JobSnapshot): Decision {
  const { job, saved } = snapshot;
  const { conditions = [] } = job.status ?? {};
  const status = waitingStatus({ ...job, status: { phase: 'Pending', conditions } }, snapshot);
  const cluster = clusterOf(snapshot);
  return {
    changes: [
      // What was saved may be another by the time it is this job's turn.
      ...(saved === undefined ? [] : [deleteState(job)]),
      ...writeStatus(job, status),
      // Only after the status: who relies on the claim must not be able to begin any more.
      ...(cluster === undefined ? [] : unclaimWorkload(cluster.deployment, job)),
    ],
  };
}

function waitingStatus(job: DeliveryJob, { policy, now, queue }: JobSnapshot): DeliveryJobStatus {
  const message = waitsFor(job, queue);
  const fields = { strategy: strategyOf(job, policy) };
  return buildStatus(job, now, { phase: 'Pending', stage: 'Queued', message, fields });
}

/** Of those far behind the same for as long as they wait. */
function waitsFor({ spec }: DeliveryJob, { ahead, before }: QueueView): string {
  if (ahead === undefined || before > NAMED_JOBS_LIMIT)
    return `Waits for the jobs of ${spec.serviceName} that came before`;
  const { message = '' } = ahead.status ?? {};
  const others = before > 1 ? `, and for ${before - 1} more` : '';
  return `Waits for job ${jobName(ahead)}${isPaused(ahead) ? `, which is paused (${message})` : ''}${others}`;
}

function giveUp({ job, now }: JobSnapshot, reason: string, message: string): Decision {
  const status = endStatus(job, now, { phase: 'RolledBack', reason, message, failure: { reason, message } });
  return { changes: writeStatus(job, status) };
}
