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
