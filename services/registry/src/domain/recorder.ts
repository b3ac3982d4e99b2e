import type { Artifact, DeliveryOperation, HistoryRecord, UpdateStatus } from './delivery-ports.ts';

/** Where a job stands (DESIGN section 5); undefined: the operator has not looked at it yet. */
export type JobPhase =
  | 'Pending'
  | 'Progressing'
  | 'Paused'
  | 'Verifying'
  | 'Promoting'
  | 'Succeeded'
  | 'RollingBack'
  | 'RolledBack'
  | 'Failed';

/** A delivery job as the recorder sees it. */
export interface ObservedJob {
  readonly uid: string;
  readonly name: string;
  readonly operation: DeliveryOperation;
  readonly serviceName: string;
  readonly version: string;
  readonly artifact: Artifact;
  readonly requestedBy: string | undefined;
  readonly phase: JobPhase | undefined;
  readonly oldVersion: string | undefined;
  readonly startedAt: Date | undefined;
  readonly finishedAt: Date | undefined;
  /** Somebody deleted it; finalizers keep it. */
  readonly deleted: boolean;
  /** Our finalizer is among those. */
  readonly held: boolean;
}

/**
 * What is to be done with a job: write it into the history and let it go; hold it, so that it cannot vanish before it was
 * recorded; let it go unrecorded; or nothing.
 */
export type RecordingStep = 'record' | 'hold' | 'release' | 'nothing';

/**
 * @param recorded whether this process knows that the job is in the history. A finished job without our finalizer was either
 *   recorded, or finished while nobody held it; writing it again tells which and does no harm.
 */
export function planRecording(job: ObservedJob, recorded: boolean): RecordingStep {
  if (outcomeOf(job.phase) !== undefined) return recorded && !job.held ? 'nothing' : 'record';
  if (!job.deleted) return job.held ? 'nothing' : 'hold';
  const started = job.phase !== undefined && job.phase !== 'Pending';
  return job.held && !started ? 'release' : 'nothing';
}

/**
 * @param now stands in for a finish that the job's status does not tell.
 * @returns undefined for a job that has not finished.
 */
export function historyRecord(job: ObservedJob, now: Date): HistoryRecord | undefined {
  const outcome = outcomeOf(job.phase);
  if (outcome === undefined) return undefined;
  const finishedAt = job.finishedAt ?? now;
  const startedAt = job.startedAt === undefined || job.startedAt > finishedAt ? finishedAt : job.startedAt;
  return {
    jobUid: job.uid,
    jobName: job.name,
    operation: job.operation,
    serviceName: job.serviceName,
    oldVersion: job.oldVersion ?? '',
    newVersion: job.version,
    startedAt,
    finishedAt,
    outcome,
    artifact: job.artifact,
    // The database's text holds no NUL, and a job that cannot be recorded could never be deleted.
    requestedBy: (job.requestedBy ?? '').replaceAll('\0', ''),
  };
}

function outcomeOf(phase: JobPhase | undefined): UpdateStatus | undefined {
  if (phase === 'Succeeded') return 'success';
  if (phase === 'Failed') return 'failed';
  return phase === 'RolledBack' ? 'rolled_back' : undefined;
}
