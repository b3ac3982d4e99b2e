import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import type { QueueView } from './snapshot.ts';

/** Whether it has reached an end; a job without a status has not begun. */
export function isFinished({ status }: DeliveryJob): boolean {
  const phase = status?.phase;
  return phase === 'Succeeded' || phase === 'RolledBack' || phase === 'Failed';
}

/** Whether it has left the queue and not reached an end: it may have changed something. */
export function isRunning(job: DeliveryJob): boolean {
  return !isFinished(job) && job.status !== undefined && job.status.phase !== 'Pending';
}

/** Whether a job comes before (negative) or after another in the queue of their service. */
export type JobOrder = (a: DeliveryJob, b: DeliveryJob) => number;

/**
 * By creation. The time of that has a precision of one second; within one, what was seen first comes first, and of what was
 * seen at once, by a list, the first name, so that everybody sees the same order.
 *
 * @param firstSeen a number that is larger for what was first seen later.
 */
export function jobOrder(firstSeen: (job: DeliveryJob) => number): JobOrder {
  return (a, b) => {
    const [createdA = '', createdB = ''] = [a, b].map(({ metadata }) => metadata.creationTimestamp);
    if (createdA !== createdB) return createdA < createdB ? -1 : 1;
    return firstSeen(a) - firstSeen(b) || (a.metadata.name < b.metadata.name ? -1 : 1);
  };
}

/** The one whose turn it is: what runs goes on, else the first in order. */
export function headOf(unfinished: readonly DeliveryJob[], order: JobOrder): DeliveryJob | undefined {
  const running = unfinished.filter(isRunning);
  return (running.length > 0 ? running : unfinished).toSorted(order)[0];
}

export interface QueueRules {
  readonly order: JobOrder;
  /** Whether a later Deploy makes what waits pointless. */
  readonly supersede: boolean;
}

/** @param unfinished every unfinished job of the service, this one among them or not. */
export function queueView(
  job: DeliveryJob,
  unfinished: readonly DeliveryJob[],
  { order, supersede }: QueueRules,
): QueueView {
  if (isRunning(job)) return { ahead: undefined, supersededBy: undefined };
  const others = unfinished.filter(({ metadata }) => metadata.uid !== job.metadata.uid);
  const head = headOf(others, order);
  if (isFinished(job))
    return { ahead: head !== undefined && isRunning(head) ? head : undefined, supersededBy: undefined };
  const isAhead = head !== undefined && (isRunning(head) || order(head, job) < 0);
  const later = others.filter((other) => supersede && order(other, job) > 0 && supersedes(other)).toSorted(order);
  return { ahead: isAhead ? head : undefined, supersededBy: later.at(-1) };
}

/** What has begun already is no later one, and one that is itself about to be given up makes nothing pointless. */
function supersedes(job: DeliveryJob): boolean {
  const { spec, metadata } = job;
  return spec.operation === 'Deploy' && !spec.abort && metadata.deletionTimestamp === undefined && !isRunning(job);
}
