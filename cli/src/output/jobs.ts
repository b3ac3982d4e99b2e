import type { JobRecord } from '@rollcall/client/job-types.ts';
import { formatAge, formatDuration } from './age.ts';
import { cell, formatFacts, formatRow, formatTable } from './table.ts';
import { printable } from './text.ts';

export function formatJobs(jobs: readonly JobRecord[], now: Date): string {
  const rows = jobs.map((job) => [
    job.job_id,
    job.service_name,
    job.old_version ?? '',
    job.version,
    job.strategy ?? '',
    job.phase,
    formatWeight(job),
    formatAge(job.created_at, now),
    job.message,
  ]);
  return formatTable(['JOB', 'SERVICE', 'FROM', 'TO', 'STRATEGY', 'PHASE', 'WEIGHT', 'AGE', 'MESSAGE'], rows);
}

export function formatJob(job: JobRecord, now: Date): string {
  const withAge = (timestamp: string | null) =>
    timestamp === null ? '' : `${timestamp} (${formatAge(timestamp, now)} ago)`;
  const facts = formatFacts({
    Job: job.job_id,
    Service: job.service_name,
    Operation: job.operation,
    Version: formatVersions(job),
    Artifact: `${job.artifact.type} ${job.artifact.url}`,
    Checksum: job.artifact.checksum ?? '',
    Strategy: job.strategy ?? '',
    Phase: job.phase,
    Stage: job.stage ?? '',
    Step: formatStep(job),
    Weight: formatWeights(job),
    Reason: job.reason ?? '',
    Message: job.message,
    'Requested by': job.requested_by,
    Created: withAge(job.created_at),
    Started: withAge(job.started_at),
    Finished: withAge(job.finished_at),
  });
  if (job.analysis.length === 0) return facts;
  const rows = job.analysis.map(({ name, measurements, failures, message }) => [
    name,
    String(measurements),
    String(failures),
    message ?? '',
  ]);
  return `${facts}\n${formatTable(['CHECK', 'MEASURED', 'FAILED', 'LAST'], rows)}`;
}

/** Rows come one by one: the widths are guesses that most jobs fit. */
const PROGRESS_WIDTHS = [8, 11, 4, 6, 0];

/**
 * What one job came to, as a line of a log; the same text at another time means that nothing
 * changed for people.
 */
export function formatProgress(job: JobRecord, time: string): string {
  const cells = [job.phase, formatWeight(job), formatStep(job), job.message].map(cell);
  return formatRow([time, ...cells], PROGRESS_WIDTHS);
}

function formatVersions({ old_version, version }: JobRecord): string {
  return old_version === null ? version : `${old_version} -> ${version}`;
}

function formatWeight({ weight }: JobRecord): string {
  return weight === null ? '' : `${weight}%`;
}

/**
 * With what there is of it, where that is another: one pod of two has half of the traffic, whatever
 * the step says.
 */
function formatWeights(job: JobRecord): string {
  const { weight, actual_weight: actual } = job;
  return actual === null || actual === weight
    ? formatWeight(job)
    : `${formatWeight(job)} (${actual}% of the traffic now)`;
}

/** Counted from 0, as by the API and kubectl. */
function formatStep({ step }: JobRecord): string {
  return step === null ? '' : `step ${step}`;
}

/** How a finished job ended, as a sentence. */
export function formatOutcome(job: JobRecord): string {
  const { service_name, version, phase, reason, message, started_at, finished_at } = job;
  const seconds =
    started_at === null || finished_at === null ? 0 : (Date.parse(finished_at) - Date.parse(started_at)) / 1000;
  const took = seconds > 0 ? ` after ${formatDuration(seconds)}` : '';
  if (phase === 'Succeeded') return printable(`version ${version} of '${service_name}' was delivered${took}`);
  const why = [reason, message].filter((part) => part !== null && part !== '').join(': ');
  const end = phase === 'RolledBack' ? 'was rolled back' : 'failed';
  return printable(`version ${version} of '${service_name}' ${end}${took}${why === '' ? '' : ` (${why})`}`);
}
