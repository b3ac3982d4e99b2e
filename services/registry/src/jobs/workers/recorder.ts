import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import { isConflict, isUnavailable } from '@rollcall/platform/kube/errors.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import { objectKey } from '@rollcall/platform/kube/store.ts';
import { isDatabaseUnavailable } from '@rollcall/platform/postgres/pool.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { createRetryQueue } from '@rollcall/platform/queues/retry-queue.ts';
import { Gauge, type Registry } from 'prom-client';
import { announceJobEvents, dueEvents, type JobEventsDeps } from '../../notifications/domain/job-events.ts';
import type { HistoryStore } from '../../releases/domain/history-store.ts';
import type { Job } from '../domain/jobs.ts';
import { historyRecord, planRecording, type RecordingStep } from '../domain/recording.ts';
import { type DeliveryJobObjects, toJob } from '../store/delivery-jobs.ts';

const CONCURRENCY = 8;
const BACKOFF = { baseMs: 100, maxMs: 5000 };

export interface RecorderDeps extends JobEventsDeps {
  /** Started and stopped by somebody else. */
  readonly informer: Pick<Informer<DeliveryJob>, 'store' | 'onChange' | 'recordWrite'>;
  readonly jobs: Pick<DeliveryJobObjects, 'hold' | 'release' | 'delete'>;
  readonly history: Pick<HistoryStore, 'record'>;
  /**
   * How long a finished job is kept; that it is over is seen at the next resync of the informer.
   */
  readonly retentionMs: number;
  readonly log: Logger;
  readonly metrics: Registry;
}

/** What this replica knows to be stored of a job that is there. */
interface Stored {
  isRecorded: boolean;
  /** Keys of the events that were sent. */
  events: ReadonlySet<string>;
}

/**
 * Sends the events of delivery jobs, and writes each finished one into the history once, then lets
 * it go, and deletes it after the retention (docs/internals.md, "Record the history"). Any number
 * of replicas may do so at once: the job's uid makes the rows unique, resource versions make the
 * finalizer's removal so. It may be killed between any two steps; whoever sees the job next does
 * the rest: the job's status keeps all that it came to, and it is held until that is stored.
 */
export function createRecorder(deps: RecorderDeps): Actor {
  const { informer, jobs, history, retentionMs, clock, log, metrics } = deps;
  const stored = new Map<string, Stored>();

  async function work(key: string): Promise<void> {
    const object = informer.store.get(key);
    if (object === undefined) return;
    const job = toJob(object);
    const known = stored.get(job.uid) ?? { isRecorded: false, events: new Set() };
    // That of one that is gone meanwhile would never be forgotten.
    const remember = () => informer.store.get(key)?.metadata.uid === job.uid && stored.set(job.uid, known);
    const next = (): RecordingStep => planRecording(job, { recorded: known.isRecorded, now: clock.now(), retentionMs });
    if (next() === 'hold') noteWrite(await jobs.hold(object));
    if (next() === 'record') {
      await record(job);
      known.isRecorded = true;
      remember();
    }
    if (!dueEvents(job).every((event) => known.events.has(event.key))) {
      known.events = await announceJobEvents(deps, job);
      remember();
    }
    if (next() === 'release') noteWrite(await jobs.release(object));
    if (next() === 'delete') await jobs.delete(object);
  }

  async function record(job: Job): Promise<void> {
    const entry = historyRecord(job, clock.now());
    if (entry === undefined || !(await history.record(entry))) return;
    log.info({ job: job.name, service: job.serviceName, status: entry.outcome }, 'delivery job recorded');
  }

  function noteWrite(object: DeliveryJob | undefined): void {
    if (object !== undefined) informer.recordWrite(object);
  }

  const queue = createRetryQueue({
    work,
    concurrency: CONCURRENCY,
    backoff: BACKOFF,
    clock,
    onFailure: (err, key, failures) => {
      // Another replica was faster, or a store does not answer, which is logged where it is noticed.
      const isExpected = isConflict(err) || isUnavailable(err) || isDatabaseUnavailable(err);
      log[isExpected ? 'debug' : 'warn']({ err, job: key, failures }, 'a delivery job could not be recorded yet');
    },
  });
  const waiting: Gauge = new Gauge({
    name: 'rollcall_history_jobs_waiting',
    help: 'Delivery jobs that wait for the recorder.',
    registers: [metrics],
    collect: (): void => waiting.set(queue.size),
  });
  informer.onChange((change) => {
    if (change.type === 'deleted') stored.delete(change.object.metadata.uid ?? '');
    else queue.add(objectKey(change.object));
  });

  return {
    name: 'history recorder',
    start: () => Promise.resolve(),
    stop: () => queue.stop(),
  };
}
