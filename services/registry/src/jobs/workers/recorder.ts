import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import { isConflict, isUnavailable } from '@rollcall/platform/kube/errors.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import { objectKey } from '@rollcall/platform/kube/store.ts';
import { isDatabaseUnavailable } from '@rollcall/platform/postgres/pool.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { createRetryQueue } from '@rollcall/platform/work/retry-queue.ts';
import { Counter, Gauge, type Registry } from 'prom-client';
import type { HistoryStore } from '../../releases/domain/history-store.ts';
import type { Job } from '../domain/jobs.ts';
import { historyRecord, planRecording, type RecordingStep } from '../domain/recording.ts';
import { type DeliveryJobObjects, toJob } from '../store/delivery-jobs.ts';

const CONCURRENCY = 8;
const BACKOFF = { baseMs: 100, maxMs: 5000 };

export interface RecorderDeps {
  /** Started and stopped by somebody else. */
  readonly informer: Pick<Informer<DeliveryJob>, 'store' | 'onChange' | 'recordWrite'>;
  readonly jobs: Pick<DeliveryJobObjects, 'hold' | 'release' | 'delete'>;
  readonly history: Pick<HistoryStore, 'record'>;
  /** Sends the events of a job that is about to be let go: nobody may see it again. */
  readonly announce: (object: DeliveryJob) => Promise<void>;
  /**
   * How long a finished job is kept; that it is over is seen at the next resync of the informer.
   */
  readonly retentionMs: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Registry;
}

/**
 * Writes each finished delivery job into the history once, then lets it go, and deletes it after
 * the retention (docs/internals.md, "Record the history"). Any number of replicas may do so at
 * once: the job's uid makes the row unique, resource versions make the finalizer's removal so. It
 * may be killed between any two steps; whoever sees the job next does the rest.
 */
export function createRecorder(deps: RecorderDeps): Actor {
  const { informer, jobs, history, announce, retentionMs, clock, log, metrics } = deps;
  const recorded = new Set<string>();
  const counter = new Counter({
    name: 'rollcall_history_entries_recorded_total',
    help: 'Finished delivery jobs that this replica wrote into the history.',
    labelNames: ['status'],
    registers: [metrics],
  });

  async function work(key: string): Promise<void> {
    const object = informer.store.get(key);
    if (object === undefined) return;
    const job = toJob(object);
    const step = planStep(job);
    if (step === 'nothing') return;
    if (step === 'delete') return jobs.delete(object);
    if (step === 'hold') return remember(await jobs.hold(object));
    if (step === 'record') {
      await record(key, job);
      if (planStep(job) !== 'release') return;
    }
    if (recorded.has(job.uid)) await announce(object);
    remember(await jobs.release(object));
  }

  function planStep(job: Job): RecordingStep {
    return planRecording(job, { recorded: recorded.has(job.uid), now: clock.now(), retentionMs });
  }

  async function record(key: string, job: Job): Promise<void> {
    const entry = historyRecord(job, clock.now());
    if (entry === undefined) return;
    if (await history.record(entry)) {
      counter.inc({ status: entry.outcome });
      log.info({ job: job.name, service: job.serviceName, status: entry.outcome }, 'delivery job recorded');
    }
    // That of one that is gone meanwhile would never be forgotten.
    if (informer.store.get(key)?.metadata.uid === job.uid) recorded.add(job.uid);
  }

  function remember(object: DeliveryJob | undefined): void {
    if (object !== undefined) informer.recordWrite(object);
  }

  const queue = createRetryQueue({
    work,
    concurrency: CONCURRENCY,
    backoff: BACKOFF,
    clock,
    onFailure: (err, key, failures) => {
      const level = isExpected(err) ? 'debug' : 'warn';
      log[level]({ err, job: key, failures }, 'a delivery job could not be recorded yet');
    },
  });
  const waiting: Gauge = new Gauge({
    name: 'rollcall_history_jobs_waiting',
    help: 'Delivery jobs that wait for the recorder.',
    registers: [metrics],
    collect: (): void => waiting.set(queue.size),
  });
  informer.onChange((change) => {
    if (change.type === 'deleted') recorded.delete(change.object.metadata.uid ?? '');
    else queue.add(objectKey(change.object));
  });

  return {
    name: 'history recorder',
    start: () => Promise.resolve(),
    stop: () => queue.stop(),
  };
}

/** Another replica was faster, or a store does not answer, which is logged where it is noticed. */
function isExpected(error: unknown): boolean {
  if (isConflict(error) || isUnavailable(error)) return true;
  return isDatabaseUnavailable(error);
}
