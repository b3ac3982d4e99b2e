import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import { isUnavailable } from '@rollcall/platform/kube/errors.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import { objectKey } from '@rollcall/platform/kube/store.ts';
import { isDatabaseUnavailable } from '@rollcall/platform/postgres/pool.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { createRetryQueue } from '@rollcall/platform/work/retry-queue.ts';
import { toJob } from '../../jobs/store/delivery-jobs.ts';
import { announceJobEvents, dueEvents, type JobEventsDeps } from '../domain/job-events.ts';

const CONCURRENCY = 4;
const BACKOFF = { baseMs: 100, maxMs: 5000 };

export interface JobEventsWorkerDeps extends JobEventsDeps {
  /** Started and stopped by somebody else. */
  readonly informer: Pick<Informer<DeliveryJob>, 'store' | 'onChange'>;
  readonly log: Logger;
}

/** Sends the events of jobs to the channels. */
export interface JobEventsWorker extends Actor {
  /** Sends all events of the job as it is. Whoever lets a finished job go awaits this first. */
  readonly announce: (object: DeliveryJob) => Promise<void>;
}

/**
 * Each event of a job is sent once, whatever dies in between: what was sent stands in the database,
 * written with the notifications themselves. What happened while no replica ran, or while the
 * database did not answer, is sent later: the job's status keeps all that it came to, and a
 * finished job is held until it has been announced.
 */
export function createJobEventsWorker(deps: JobEventsWorkerDeps): JobEventsWorker {
  const { informer, clock, log } = deps;
  /** By uid, what is known to have been announced. */
  const announced = new Map<string, ReadonlySet<string>>();

  async function announce(object: DeliveryJob): Promise<void> {
    const job = toJob(object);
    const known = announced.get(job.uid);
    if (dueEvents(job).every(({ key }) => known?.has(key) === true)) return;
    const all = await announceJobEvents(deps, job);
    // What is known of one that is gone meanwhile would never be forgotten.
    if (informer.store.get(objectKey(object))?.metadata.uid === job.uid) announced.set(job.uid, all);
  }

  const queue = createRetryQueue({
    async work(key) {
      const object = informer.store.get(key);
      if (object !== undefined) await announce(object);
    },
    concurrency: CONCURRENCY,
    backoff: BACKOFF,
    clock,
    onFailure: (err, key, failures) => {
      const expected = isUnavailable(err) || isDatabaseUnavailable(err);
      log[expected ? 'debug' : 'warn'](
        { err, job: key, failures },
        'the events of a delivery job could not be stored yet',
      );
    },
  });
  informer.onChange((change) => {
    if (change.type === 'deleted') announced.delete(change.object.metadata.uid ?? '');
    else queue.add(objectKey(change.object));
  });

  return {
    name: 'job events',
    announce,
    start: () => Promise.resolve(),
    stop: () => queue.stop(),
  };
}
