import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import { RegistryError } from '../../common/errors.ts';
import type { Job, JobDirectory } from '../domain/jobs.ts';
import { jobIdOf, objectNameOf, toJob } from './delivery-jobs.ts';

type Listener = (job: Job, gone: boolean) => void;

/** The jobs in the local copy. */
export function createJobDirectory(informer: Informer<DeliveryJob>, namespace: string): JobDirectory {
  const listeners = new Map<string, Set<Listener>>();

  function findObject(jobId: string): DeliveryJob | undefined {
    const object = informer.store.get(`${namespace}/${objectNameOf(jobId)}`);
    return object !== undefined && jobIdOf(object) === jobId ? object : undefined;
  }

  informer.onChange((change) => {
    if (change.type === 'resync') return;
    const following = listeners.get(jobIdOf(change.object));
    if (following === undefined) return;
    const job = toJob(change.object);
    for (const listener of following) listener(job, change.type === 'deleted');
  });

  return {
    all() {
      if (!informer.hasSynced())
        throw new RegistryError('STORE_UNAVAILABLE', 'The jobs have not been read from the Kubernetes API yet');
      return Array.from(informer.store.values(), toJob);
    },
    find(jobId) {
      const object = findObject(jobId);
      return object === undefined ? undefined : toJob(object);
    },
    follow(jobId, listener) {
      const following = listeners.get(jobId) ?? new Set();
      listeners.set(jobId, following);
      following.add(listener);
      return () => {
        following.delete(listener);
        if (following.size === 0 && listeners.get(jobId) === following) listeners.delete(jobId);
      };
    },
  };
}
