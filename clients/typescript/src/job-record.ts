import { type JobRecord, jobPhases } from './job-types.ts';
import { parseObject } from './registry-error.ts';

/** Whether nothing more will happen to the job. */
export function isFinished({ phase }: Pick<JobRecord, 'phase'>): boolean {
  return phase === 'Succeeded' || phase === 'RolledBack' || phase === 'Failed';
}

/** @returns undefined for what is not the record of a job in a phase that this version knows. */
export function parseJobRecord(json: string): JobRecord | undefined {
  const { job_id: id, phase } = parseObject(json) ?? {};
  if (typeof id !== 'string' || id === '' || !jobPhases.some((known) => known === phase)) return undefined;
  const record: JobRecord = JSON.parse(json);
  return record;
}

/** What is known of one job, by event stream and polls, and what of it is new. */
export interface JobChanges {
  /**
   * Adds a record.
   *
   * @param cursor the id of the event that brought it; undefined for an answer.
   * @returns the record where it says something else than the last one; undefined also for an event
   * from before the cursor: another replica, which lags, may send one after a reconnect.
   */
  take(record: JobRecord, cursor?: string): JobRecord | undefined;
  /** The id of the newest event, to resume after. */
  cursor(): string | undefined;
  /** Whether the last record was the job's end. */
  areOver(): boolean;
}

export function createJobChanges(): JobChanges {
  let newest: string | undefined;
  let last: JobRecord | undefined;
  return {
    take(record, cursor) {
      if (cursor !== undefined && newest !== undefined && Number(cursor) < Number(newest)) return undefined;
      if (cursor !== undefined && cursor !== '') newest = cursor;
      const isNews = JSON.stringify(record) !== JSON.stringify(last);
      last = record;
      return isNews ? record : undefined;
    },
    cursor: () => newest,
    areOver: () => last !== undefined && isFinished(last),
  };
}
