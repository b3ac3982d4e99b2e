import { type JobAnalysis, type JobRecord, jobPhases, strategies } from './job-types.ts';
import { parseObject } from './registry-error.ts';

/** Whether nothing more will happen to the job. */
export function isFinished({ phase }: Pick<JobRecord, 'phase'>): boolean {
  return phase === 'Succeeded' || phase === 'RolledBack' || phase === 'Failed';
}

/** @returns undefined for what is not the record of a job in a phase that this version knows. */
export function parseJobRecord(json: string): JobRecord | undefined {
  const body = parseObject(json);
  if (body === undefined) return undefined;
  const phase = jobPhases.find((known) => known === body['phase']);
  const artifact = fieldsOf(body['artifact']);
  const record = {
    job_id: text(body['job_id']),
    service_name: text(body['service_name']),
    operation: body['operation'] === 'rollback' ? 'rollback' : 'deploy',
    version: text(body['version']),
    old_version: textOrNull(body['old_version']),
    strategy: strategies.find((known) => known === body['strategy']) ?? null,
    stage: textOrNull(body['stage']),
    step: numberOrNull(body['step']),
    weight: numberOrNull(body['weight']),
    actual_weight: numberOrNull(body['actual_weight']),
    reason: textOrNull(body['reason']),
    message: text(body['message']),
    artifact: {
      url: text(artifact['url']),
      type: text(artifact['type']),
      checksum: textOrNull(artifact['checksum']),
    },
    requested_by: text(body['requested_by']),
    created_at: text(body['created_at']),
    started_at: textOrNull(body['started_at']),
    finished_at: textOrNull(body['finished_at']),
    analysis: Array.isArray(body['analysis']) ? body['analysis'].map((entry) => parseAnalysis(entry)) : [],
  } as const;
  return phase === undefined || record.job_id === '' ? undefined : { ...record, phase };
}

function parseAnalysis(value: unknown): JobAnalysis {
  const { name, measurements, failures, message } = fieldsOf(value);
  return {
    name: text(name),
    measurements: numberOrNull(measurements) ?? 0,
    failures: numberOrNull(failures) ?? 0,
    message: textOrNull(message),
  };
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function numberOrNull(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
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
