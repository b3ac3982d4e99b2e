import type { HistoryRecord, UpdateStatus } from '../../releases/domain/history-store.ts';
import type { Release } from '../../releases/domain/release.ts';
import { isDeliverable } from '../../releases/domain/release-input.ts';
import type { Job, JobPhase } from './jobs.ts';

/**
 * What is to be done with a job: write it into the history; hold it, so that it cannot vanish
 * before it was recorded; let it go; delete it, for the history has it; or nothing.
 */
export type RecordingStep = 'record' | 'hold' | 'release' | 'delete' | 'nothing';

/**
 * Reasons of jobs that were no update: given up before anything was touched, or what they bring ran
 * already.
 */
const NO_UPDATE: ReadonlySet<string | undefined> = new Set(['Cancelled', 'Superseded', 'NotNewer', 'Unchanged']);

/** What the decision on a job rests on beside the job. */
export interface RecordingCircumstances {
  /**
   * Whether this process knows that the job is in the history. A finished job without our finalizer
   * was either recorded, or finished while nobody held it; writing it again shows which and does no
   * harm.
   */
  readonly recorded: boolean;
  readonly now: Date;
  /** How long a finished job is kept once it is recorded. */
  readonly retentionMs: number;
}

export function planRecording(
  job: Pick<Job, 'phase' | 'held' | 'attended' | 'deleted' | 'finishedAt'>,
  { recorded, now, retentionMs }: RecordingCircumstances,
): RecordingStep {
  if (outcomeOf(job.phase) !== undefined) {
    if (!recorded) return 'record';
    // The operator's finalizer keeps it anyway, and two that change finalizers at once are in each
    // other's way.
    if (job.held) return job.attended ? 'nothing' : 'release';
    const isKept = job.finishedAt === undefined || now.getTime() - job.finishedAt.getTime() < retentionMs;
    return isKept || job.deleted ? 'nothing' : 'delete';
  }
  if (!job.deleted) return job.held ? 'nothing' : 'hold';
  const started = job.phase !== undefined && job.phase !== 'Pending';
  // One that has returned to the queue is given up by the operator, and reported.
  return job.held && !job.attended && !started ? 'release' : 'nothing';
}

/**
 * @param now stands in for a finish that the job's status does not have.
 * @returns undefined for a job that has not finished.
 */
export function historyRecord(job: Job, now: Date): HistoryRecord | undefined {
  const outcome = outcomeOf(job.phase);
  if (outcome === undefined) return undefined;
  const finishedAt = job.finishedAt ?? now;
  const startedAt = job.startedAt === undefined || job.startedAt > finishedAt ? finishedAt : job.startedAt;
  return {
    jobUid: job.uid,
    jobName: job.name,
    jobId: job.id,
    operation: job.operation,
    serviceName: job.serviceName,
    oldVersion: job.oldVersion ?? '',
    newVersion: job.version,
    startedAt,
    finishedAt,
    outcome,
    artifact: job.artifact,
    requestedBy: storable(job.requestedBy ?? ''),
    strategy: job.strategy,
    isUpdate: outcome === 'failed' || !NO_UPDATE.has(job.reason),
    oldRelease: oldReleaseOf(job),
    reason: job.reason,
    message: job.message === undefined ? undefined : storable(job.message),
    createdAt: job.createdAt,
  };
}

/** What ran before there were any jobs is a release that nobody has announced. */
function oldReleaseOf({ serviceName, oldVersion, oldArtifact }: Job): Release | undefined {
  if (oldVersion === undefined || oldArtifact === undefined) return undefined;
  const release = { serviceName, version: oldVersion, artifact: oldArtifact };
  return isDeliverable(release) ? release : undefined;
}

/** The database's text holds no NUL, and a job that cannot be recorded could never be deleted. */
function storable(text: string): string {
  return text.replaceAll('\0', '');
}

function outcomeOf(phase: JobPhase | undefined): UpdateStatus | undefined {
  if (phase === 'Succeeded') return 'success';
  if (phase === 'Failed') return 'failed';
  return phase === 'RolledBack' ? 'rolled_back' : undefined;
}
