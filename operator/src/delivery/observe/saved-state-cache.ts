import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import { type ControllerRevision, controllerRevisionKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeObject } from '@rollcall/platform/kube/resource-client.ts';
import { objectKey, type Store } from '@rollcall/platform/kube/store.ts';
import { readSavedState } from '../job/saved-state.ts';
import type { SavedState } from '../job/snapshot.ts';
import { isFinished, isRunning } from '../start/queue.ts';
import type { DirectReads } from './direct-reads.ts';

/** What jobs have saved. It never changes as long as they run, so it is read once. */
export type SavedStateCache = ReturnType<typeof createSavedStateCache>;

/**
 * @param jobs that have not been deleted: nothing is kept of another one, since nothing would
 * remove it.
 */
export function createSavedStateCache(reads: Pick<DirectReads, 'findRevision'>, jobs: Pick<Store<DeliveryJob>, 'get'>) {
  /**
   * By uid of the job; undefined: while it waits or prepares, as who is to save will find out if
   * somebody else has.
   */
  const states = new Map<string, SavedState | undefined>();

  function keep(job: DeliveryJob, saved: SavedState | undefined): void {
    const { uid = '' } = job.metadata;
    if (jobs.get(objectKey(job))?.metadata.uid === uid) states.set(uid, saved);
  }

  return {
    /** Undefined for a job that has saved nothing. @throws as the API server's client. */
    async find(job: DeliveryJob): Promise<SavedState | undefined> {
      const { uid = '' } = job.metadata;
      if (!isRunning(job) && !isFinished(job)) {
        // One that has returned to the queue saves anew.
        keep(job, undefined);
        return undefined;
      }
      const known = states.get(uid);
      const isPreparing = job.status?.stage === 'Preparing';
      if (known !== undefined || (isPreparing && states.has(uid))) return known;
      const saved = readSavedState(job, await reads.findRevision(job));
      if (saved !== undefined || isPreparing) keep(job, saved);
      return saved;
    },
    /** The next observation reads. */
    forget: ({ metadata }: DeliveryJob): void => void states.delete(metadata.uid ?? ''),
    /** What the operator writes, or finds to be there already, need not be read. */
    writeCache: {
      kind: controllerRevisionKind,
      informer: {
        recordWrite(revision: KubeObject & Pick<ControllerRevision, 'data'>) {
          const job = jobs.get(objectKey(revision));
          if (job !== undefined) keep(job, readSavedState(job, revision));
        },
        recordDelete(revision: KubeObject) {
          const job = jobs.get(objectKey(revision));
          if (job !== undefined) states.delete(job.metadata.uid ?? '');
        },
      },
    },
  };
}
