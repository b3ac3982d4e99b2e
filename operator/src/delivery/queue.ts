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

/** By creation, which has a precision of one second; within that by name, so that everybody sees the same order. */
export function compareJobs(a: DeliveryJob, b: DeliveryJob): number {
  const [createdA = '', createdB = ''] = [a, b].map(({ metadata }) => metadata.creationTimestamp);
  if (createdA !== createdB) return createdA < createdB ? -1 : 1;
  return a.metadata.name < b.metadata.name ? -1 : 1;
}

/** The one whose turn it is: what runs goes on, else the first in order. */
export function headOf(unfinished: readonly DeliveryJob[]): DeliveryJob | undefined {
  const running = unfinished.filter(isRunning);
  return (running.length > 0 ? running : unfinished).toSorted(compareJobs)[0];
}

/** @param unfinished every unfinished job of the service, this one among them or not. */
export function queueView(job: DeliveryJob, unfinished: readonly DeliveryJob[], supersede: boolean): QueueView {
  if (isFinished(job) || isRunning(job)) return { ahead: undefined, supersededBy: undefined };
  const others = unfinished.filter(({ metadata }) => metadata.uid !== job.metadata.uid);
  const head = headOf(others);
  const isAhead = head !== undefined && (isRunning(head) || compareJobs(head, job) < 0);
  const later = others.filter((other) => isLaterDeploy(other, job)).toSorted(compareJobs);
  return { ahead: isAhead ? head : undefined, supersededBy: supersede ? later.at(-1) : undefined };
}

/** One that is itself about to be given up makes nothing pointless. */
function isLaterDeploy(other: DeliveryJob, job: DeliveryJob): boolean {
  const { spec, metadata } = other;
  const wanted = spec.operation === 'Deploy' && !spec.abort && metadata.deletionTimestamp === undefined;
  return wanted && compareJobs(other, job) > 0;
}
