import type { DeliveryFailure } from '@rollcall/crds/types.gen.ts';

/** Every reason for which a job that has changed something is undone. */
export type FailureReason =
  | 'Aborted'
  | 'Preempted'
  | 'JobDeleted'
  | 'ChangedFromOutside'
  | 'WorkloadDeleted'
  | 'WorkloadPaused'
  | 'SavedStateLost'
  | 'ImagePullFailed'
  | 'CrashLoop'
  | 'ContainerConfigInvalid'
  | 'ArtifactFetchFailed'
  | 'PodsNotReady'
  | 'ProgressDeadlineExceeded'
  | 'ChecksFailed'
  | 'ChangeRejected'
  | 'RollbackIncomplete'
  | 'NotHandedBack';

/** After these not everything is as before the job, so that it cannot be called rolled back. */
const unrestored: ReadonlySet<string> = new Set<FailureReason>([
  'ChangedFromOutside',
  'WorkloadDeleted',
  'WorkloadPaused',
  'SavedStateLost',
  'RollbackIncomplete',
  'NotHandedBack',
]);

/** After these the API server may accept later what it has not accepted in time. */
const unfinished: ReadonlySet<string | undefined> = new Set<FailureReason>(['RollbackIncomplete', 'NotHandedBack']);

/** Of changes that are still to be made at a deadline. */
export const NOT_ACCEPTED = 'the API server has not accepted all changes in time';

/** Of those of them that are still made when the job has ended: what a user can do. */
export const STILL_TRIED = `${NOT_ACCEPTED}. They are tried again until it accepts them, unless another job claims the Deployment first: mend what is refused (the Events ChangeRejected of this job name it), or deploy the version that is to run`;

export function failure(reason: FailureReason, message: string): DeliveryFailure {
  return { reason, message };
}

/** @param what that changed, as the beginning of a sentence. */
export function changedFromOutside(what: string): DeliveryFailure {
  return failure('ChangedFromOutside', `${what} was changed from outside; the job has ended, the change stays`);
}

/** Whether a job has ended with something of its own possibly still in objects of the user's. */
export function endedEarly(failure: DeliveryFailure | undefined): boolean {
  return unfinished.has(failure?.reason);
}

/**
 * Whether a job was undone, and not all of it: of one that has delivered only what it has changed
 * besides is left.
 */
export function isRollbackUnfinished(failure: DeliveryFailure | undefined): boolean {
  return endedEarly(failure) && failure?.reason !== 'NotHandedBack';
}

/** How a job ends that was undone for this reason. */
export function endOf({ reason }: DeliveryFailure): 'RolledBack' | 'Failed' {
  return unrestored.has(reason) ? 'Failed' : 'RolledBack';
}
