import type { DeliveryJob, DeliveryJobStatus } from '@rollcall/crds/types.gen.ts';
import type { Decision } from '../runtime/decision.ts';
import { begin } from './preparation.ts';
import { deleteState } from './saved-state.ts';
import type { JobSnapshot } from './snapshot.ts';
import { strategyOf } from './start-checks.ts';
import { buildStatus, endStatus, writeStatus } from './status.ts';
import { clusterOf } from './view.ts';
import { unclaimWorkload } from './workload.ts';

/** A job that has not begun: it waits for its turn, is given up, or begins. */
export function planQueued(snapshot: JobSnapshot): Decision {
  const { job, queue } = snapshot;
  if (job.spec.abort || job.metadata.deletionTimestamp !== undefined) {
    return giveUp(snapshot, 'Cancelled', 'Cancelled while it waited for its turn');
  }
  if (queue.supersededBy !== undefined) {
    const { name } = queue.supersededBy.metadata;
    const { version } = queue.supersededBy.spec;
    return giveUp(snapshot, 'Superseded', `Job ${name} was asked for since, and brings ${version}`);
  }
  if (queue.ahead === undefined) return begin(snapshot);
  return { changes: writeStatus(job, waitingStatus(job, snapshot)) };
}

/** A job that prepares, and sees that another has left the queue before it: it returns there, as if it had not begun. */
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

/** The same for as long as it waits: hundreds that wait must not all be written whenever the one ahead of them changes. */
function waitingStatus(job: DeliveryJob, { policy, now }: JobSnapshot): DeliveryJobStatus {
  const message = `Waits for the jobs of ${job.spec.serviceName} that came before`;
  const fields = { strategy: strategyOf(job, policy) };
  return buildStatus(job, now, { phase: 'Pending', stage: 'Queued', message, fields });
}

function giveUp({ job, now }: JobSnapshot, reason: string, message: string): Decision {
  const status = endStatus(job, now, { phase: 'RolledBack', reason, message, failure: { reason, message } });
  return { changes: writeStatus(job, status) };
}
