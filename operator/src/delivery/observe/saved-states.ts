import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import { isFinished, isRunning } from '../queue.ts';
import { readSavedState } from '../saved-state.ts';
import type { SavedState } from '../snapshot.ts';
import type { DirectReads } from './direct-reads.ts';

/** What jobs have saved. It never changes as long as they run, so it is read once. */
export interface SavedStates {
  /** Undefined for a job that has saved nothing. @throws as the API server's client. */
  find(job: DeliveryJob): Promise<SavedState | undefined>;
  forget(job: DeliveryJob): void;
}

/** @param isThere whether a job has not been deleted: of one that has, nothing is kept that nobody would ever forget. */
export function createSavedStates(
  reads: Pick<DirectReads, 'findRevision'>,
  isThere: (job: DeliveryJob) => boolean,
): SavedStates {
  /** By uid of the job. */
  const states = new Map<string, SavedState>();
  return {
    async find(job) {
      const { uid = '' } = job.metadata;
      if (!isRunning(job) && !isFinished(job)) {
        // One that has returned to the queue saves anew.
        states.delete(uid);
        return undefined;
      }
      const known = states.get(uid);
      if (known !== undefined) return known;
      const saved = readSavedState(job, await reads.findRevision(job));
      if (saved !== undefined && isThere(job)) states.set(uid, saved);
      return saved;
    },
    forget: ({ metadata }) => void states.delete(metadata.uid ?? ''),
  };
}
