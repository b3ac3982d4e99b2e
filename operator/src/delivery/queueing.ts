import type { Decision } from '../runtime/decision.ts';
import { begin } from './preparation.ts';
import type { JobSnapshot } from './snapshot.ts';
import { strategyOf } from './start-checks.ts';
import { buildStatus, endStatus, writeStatus } from './status.ts';

/** A job that has not begun: it waits for its turn, is given up, or begins. */
export function planQueued(snapshot: JobSnapshot): Decision {
  const { job, policy, queue, now } = snapshot;
  if (job.spec.abort || job.metadata.deletionTimestamp !== undefined) {
    return giveUp(snapshot, 'Cancelled', 'Cancelled while it waited for its turn');
  }
  if (queue.supersededBy !== undefined) {
    const { name } = queue.supersededBy.metadata;
    const { version } = queue.supersededBy.spec;
    return giveUp(snapshot, 'Superseded', `Job ${name} was asked for since, and brings ${version}`);
  }
  if (queue.ahead === undefined) return begin(snapshot);
  const message = `Waits for job ${queue.ahead.metadata.name}`;
  const fields = { strategy: strategyOf(job, policy) };
  return { changes: writeStatus(job, buildStatus(job, now, { phase: 'Pending', stage: 'Queued', message, fields })) };
}

function giveUp({ job, now }: JobSnapshot, reason: string, message: string): Decision {
  const status = endStatus(job, now, { phase: 'RolledBack', reason, message, failure: { reason, message } });
  return { changes: writeStatus(job, status) };
}
