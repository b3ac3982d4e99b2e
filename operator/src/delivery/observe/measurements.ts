import type { Clock } from '@rollcall/platform/clock.ts';
import { createConcurrencyLimiter } from '@rollcall/platform/queues/concurrency-limiter.ts';
import type { CheckRunner, CheckSubject } from '../checks/check.ts';
import type { DueCheck, Measurement } from '../job/snapshot.ts';

export interface MeasurementsDeps {
  readonly checkRunner: Pick<CheckRunner, 'measure'>;
  readonly clock: Clock;
  /** How many are made at once; the rest waits. */
  readonly concurrency: number;
  /** Called when a job has a result that {@link Measurements.completed} would give. */
  readonly onCompleted: (jobKey: string) => void;
}

/**
 * What is verified: results of another verification, of the same job or of one of that name before,
 * count for nothing.
 */
export interface VerificationKey {
  /** `namespace/name`. */
  readonly jobKey: string;
  /** Differs between any two verifications of the job. */
  readonly id: string;
}

/**
 * Makes measurements in the background, so that neither a slow check nor many of them hold up a
 * reconcile. A result is kept until {@link Measurements.recorded} is called with it; what a crash
 * loses is measured again.
 */
export type Measurements = ReturnType<typeof createMeasurements>;

interface Entry {
  readonly id: string;
  readonly cancelled: AbortController;
  /** Names of the checks that wait or are measured. */
  readonly underWay: Set<string>;
  done: readonly Measurement[];
}

export function createMeasurements({ checkRunner, clock, concurrency, onCompleted }: MeasurementsDeps) {
  const limiter = createConcurrencyLimiter({ most: concurrency });
  const entries = new Map<string, Entry>();
  const running = new Set<Promise<void>>();
  let stopped = false;

  function forget(jobKey: string): void {
    entries.get(jobKey)?.cancelled.abort();
    entries.delete(jobKey);
  }

  function entryOf({ jobKey, id }: VerificationKey): Entry | undefined {
    const entry = entries.get(jobKey);
    if (entry === undefined || entry.id === id) return entry;
    forget(jobKey);
    return undefined;
  }

  async function measure(jobKey: string, entry: Entry, task: Task): Promise<void> {
    const { signal } = entry.cancelled;
    const { check } = task.due;
    await limiter.run(jobKey, async () => {
      if (signal.aborted) return;
      try {
        const { passed, message } = await checkRunner.measure(check, task.subject(), signal);
        entry.done = [...entry.done, { check: check.name, passed, at: clock.now(), message }];
      } catch (error) {
        if (!signal.aborted) throw error;
      }
      entry.underWay.delete(check.name);
    });
    if (!signal.aborted) onCompleted(jobKey);
  }

  function track(work: Promise<void>): void {
    const tracked = work.finally(() => running.delete(tracked));
    running.add(tracked);
  }

  return {
    /**
     * Results since the last ones that were recorded. Cancels whatever belongs to another
     * verification of the job.
     */
    completed: (verification: VerificationKey): readonly Measurement[] => entryOf(verification)?.done ?? [],
    /**
     * Starts what is due and not under way.
     *
     * @param subject called when a measurement really begins.
     */
    start(verification: VerificationKey, due: readonly DueCheck[], subject: () => CheckSubject): void {
      if (stopped) return;
      const { jobKey, id } = verification;
      const entry = entryOf(verification) ?? { id, cancelled: new AbortController(), underWay: new Set(), done: [] };
      entries.set(jobKey, entry);
      const now = clock.now();
      for (const next of due) {
        const { name } = next.check;
        const known = entry.underWay.has(name) || entry.done.some(({ check }) => check === name);
        if (known || next.dueAt > now) continue;
        entry.underWay.add(name);
        track(measure(jobKey, entry, { due: next, subject }));
      }
    },
    /** The results are in the job's status, or nobody wants them. */
    recorded(jobKey: string, results: readonly Measurement[]): void {
      const entry = entries.get(jobKey);
      if (entry !== undefined) entry.done = entry.done.filter((result) => !results.includes(result));
    },
    /** Cancels everything of the job. */
    forget,
    /** Cancels everything; resolves when nothing is under way. */
    async stop(): Promise<void> {
      stopped = true;
      for (const jobKey of entries.keys()) forget(jobKey);
      await Promise.all(running);
    },
  };
}

/** One measurement. */
interface Task {
  readonly due: DueCheck;
  readonly subject: () => CheckSubject;
}
