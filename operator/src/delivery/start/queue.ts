import { finalizers } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob, DeliveryPhase } from '@rollcall/crds/types.gen.ts';
import type { QueueView } from '../job/snapshot.ts';

/** Whether a job in this phase has reached an end. */
export function isEnd(phase: DeliveryPhase | undefined): boolean {
  return phase === 'Succeeded' || phase === 'RolledBack' || phase === 'Failed';
}

/** Whether it has reached an end; a job without a status has not begun. */
export function isFinished({ status }: DeliveryJob): boolean {
  return isEnd(status?.phase);
}

/** Whether it has ended and handed everything back. */
export function isLetGo(job: DeliveryJob): boolean {
  return isFinished(job) && job.metadata.finalizers?.includes(finalizers.delivery) !== true;
}

/** Whether it has left the queue and not reached an end: it may have changed something. */
export function isRunning(job: DeliveryJob): boolean {
  return !isFinished(job) && job.status !== undefined && job.status.phase !== 'Pending';
}

/** Whether it waits for time to pass or for somebody to promote it. */
export function isPaused({ status }: DeliveryJob): boolean {
  return status?.phase === 'Paused';
}

/** Whether a job comes before (negative) or after another in the queue of their service. */
export type JobOrder = (a: DeliveryJob, b: DeliveryJob) => number;

/**
 * By creation. The time of that has a precision of one second; within one, what was seen first
 * comes first, and of what was seen at once, by a list, the first name, so that everybody sees the
 * same order.
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

/** Whether it runs and may have changed more than itself. */
function hasBegun(job: DeliveryJob): boolean {
  return isRunning(job) && job.status?.stage !== 'Preparing';
}

/**
 * The one whose turn it is: what has begun goes on, else what prepares to, else the first in order.
 */
export function headOf(unfinished: readonly DeliveryJob[], order: JobOrder): DeliveryJob | undefined {
  let head: DeliveryJob | undefined;
  for (const job of unfinished) {
    if (head === undefined || comesBefore(job, head, order)) head = job;
  }
  return head;
}

function comesBefore(job: DeliveryJob, other: DeliveryJob, order: JobOrder): boolean {
  if (hasBegun(job) !== hasBegun(other)) return hasBegun(job);
  if (isRunning(job) !== isRunning(other)) return isRunning(job);
  return order(job, other) < 0;
}

/**
 * So many waiting jobs say whom they wait for: hundreds must not all be written whenever that
 * changes.
 */
export const NAMED_JOBS_LIMIT = 10;

export interface QueueRules {
  readonly order: JobOrder;
  /** Whether a later Deploy makes what waits pointless. */
  readonly supersede: boolean;
}

/**
 * A job that only prepares may have left the queue at the same time as another, which neither could
 * see yet: one of them returns.
 *
 * @param unfinished every unfinished job of the service, this one among them or not.
 */
export function queueView(
  job: DeliveryJob,
  unfinished: readonly DeliveryJob[],
  { order, supersede }: QueueRules,
): QueueView {
  const others = unfinished.filter(({ metadata }) => metadata.uid !== job.metadata.uid);
  const preemptedBy = others
    .filter((other) => preempts(other, job) && isWanted(other))
    .toSorted(order)
    .at(-1);
  if (isRunning(job)) {
    const first = hasBegun(job) ? job : headOf([job, ...others], order);
    return { ahead: first === job ? undefined : first, before: first === job ? 0 : 1, supersededBy: preemptedBy };
  }
  const head = headOf(others, order);
  if (isFinished(job)) {
    const isOther = head !== undefined && isRunning(head);
    return { ahead: isOther ? head : undefined, before: isOther ? 1 : 0, supersededBy: undefined };
  }
  const before = others.filter((other) => isRunning(other) || order(other, job) < 0).length;
  const isAhead = head !== undefined && (isRunning(head) || order(head, job) < 0);
  const isReplaceable = supersede && job.spec.operation === 'Deploy';
  const later = others.filter((other) => isReplaceable && order(other, job) > 0 && supersedes(other)).toSorted(order);
  const isMoot = preemptedBy !== undefined && order(preemptedBy, job) > 0;
  return { ahead: isAhead ? head : undefined, before, supersededBy: isMoot ? preemptedBy : later.at(-1) };
}

function supersedes(job: DeliveryJob): boolean {
  return job.spec.operation === 'Deploy' && isWanted(job);
}

/**
 * What has begun already is no later one, and one that is itself about to be given up makes nothing
 * pointless.
 */
function isWanted(job: DeliveryJob): boolean {
  return !job.spec.abort && job.metadata.deletionTimestamp === undefined && !isRunning(job);
}

/**
 * Whether a job that waits has the one that runs undone: an immediate one does, and a rollback
 * where a deploy is paused, which may be for ever.
 */
function preempts({ spec }: DeliveryJob, running: DeliveryJob): boolean {
  const isInTheWay = spec.operation === 'Rollback' && running.spec.operation === 'Deploy' && isPaused(running);
  return spec.immediate === true || isInTheWay;
}
