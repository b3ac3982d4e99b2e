import type { ConcurrencyLimiter } from '@rollcall/platform/queues/concurrency-limiter.ts';
import { RegistryError } from '../../common/errors.ts';
import { parseLimit } from '../../common/limit.ts';
import { checkServiceName } from '../../common/validation.ts';
import type { Artifact } from '../../releases/domain/release.ts';
import type { DeliveryOperation, DeliveryStrategy } from './requested-job.ts';

/** A job that changes during a command is read again, this often at most. */
const TRIES = 10;
/**
 * Of the longest operation, service name, version and time, and the three hyphens between; no
 * object name is longer.
 */
const ID_MAX_LENGTH = 'rollback'.length + 253 + 128 + 11 + 3;

/** Where a job stands, in the order of a job that goes well, then the others. */
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

/** What one check of the new version has measured so far. */
interface CheckResult {
  readonly name: string;
  readonly measurements: number;
  readonly failures: number;
  readonly message?: string;
}

/** A phase that a job came to between its start and its end. */
export interface Milestone {
  readonly phase: JobPhase;
  readonly step?: number | undefined;
  /** When the phase began. */
  readonly at: Date;
  /** At that time. */
  readonly weight?: number | undefined;
}

/** A delivery job as it stands. What is not known yet is undefined. */
export interface Job {
  readonly uid: string;
  /** The documented `job_id`; the name of the object where that is none. */
  readonly id: string;
  /** Of the object. */
  readonly name: string;
  readonly operation: DeliveryOperation;
  readonly serviceName: string;
  readonly version: string;
  readonly artifact: Artifact;
  /**
   * How it goes about it, as it was asked for until the operator has decided; undefined: nobody has
   * said yet.
   */
  readonly strategy: DeliveryStrategy | undefined;
  readonly requestedBy: string | undefined;
  readonly createdAt: Date;
  /** Undefined: the operator has not observed it yet. */
  readonly phase?: JobPhase | undefined;
  readonly oldVersion: string | undefined;
  /** What that was run from. */
  readonly oldArtifact?: Artifact | undefined;
  readonly stage?: string | undefined;
  readonly stageStartedAt?: Date | undefined;
  readonly step?: number | undefined;
  readonly weight?: number | undefined;
  /** What replicas or routes make of the weight. */
  readonly actualWeight?: number | undefined;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly startedAt: Date | undefined;
  readonly finishedAt: Date | undefined;
  readonly checks: readonly CheckResult[];
  /** Every phase at every step so far, once each, in order; none where nobody keeps them. */
  readonly milestones: readonly Milestone[];
  /** Somebody asked for it to be aborted. */
  readonly aborted: boolean;
  /** Somebody asked for the pause to end, and the operator has not acted on it yet. */
  readonly promoted: boolean;
  /** The object still says so of an earlier pause, which the operator has ended. */
  readonly promoteUsed: boolean;
  /** Somebody deleted it; finalizers keep it. */
  readonly deleted: boolean;
  /** The finalizer that keeps it until it is recorded, and the operator has let it go, is there. */
  readonly held: boolean;
  /** The finalizer that keeps it until the operator has nothing left to do for it is there. */
  readonly attended: boolean;
  /**
   * The object's version, which grows with every change; undefined for a job that is known from the
   * history alone.
   */
  readonly revision?: number | undefined;
}

/** The jobs that are there now, from the local copy. */
export interface JobDirectory {
  /** @throws RegistryError STORE_UNAVAILABLE before the copy is complete. */
  all(): Job[];
  find(jobId: string): Job | undefined;
}

/** What is asked of a running job. */
export type JobCommand = 'promote' | 'abort';

export interface JobCommands {
  /** From the backing store itself. */
  fetch(jobId: string): Promise<Job | undefined>;
  /** All of a service, from the backing store itself. */
  fetchOf(serviceName: string): Promise<Job[]>;
  /**
   * Writes the command on exactly the job as it was seen.
   *
   * @returns undefined when it has changed since, or is gone.
   */
  command(job: Job, command: JobCommand): Promise<Job | undefined>;
}

/** Jobs that have finished. */
export interface JobHistory {
  /** The latest of that id. */
  findJob(jobId: string): Promise<Job | undefined>;
}

export interface JobsDeps {
  readonly directory: JobDirectory;
  readonly jobs: JobCommands;
  readonly history: JobHistory;
  /** Keeps lookups of unknown ids from using all connections. */
  readonly misses: Pick<ConcurrencyLimiter, 'run'>;
}

export interface JobQuery {
  readonly serviceName: string | undefined;
  readonly phase: JobPhase | undefined;
  /** As it stands in the query; 100 when absent. */
  readonly limit: string | undefined;
}

/**
 * The jobs that are there, newest first.
 *
 * @returns with `total`, the number of matches, whatever the limit.
 * @throws RegistryError INVALID_REQUEST, INVALID_SERVICE_NAME, STORE_UNAVAILABLE.
 */
export function listJobs(
  { directory }: Pick<JobsDeps, 'directory'>,
  { serviceName, phase, limit }: JobQuery,
): { readonly jobs: readonly Job[]; readonly total: number } {
  const most = parseLimit(limit);
  if (serviceName !== undefined) checkServiceName(serviceName);
  const matching = directory
    .all()
    .filter((job) => serviceName === undefined || job.serviceName === serviceName)
    .filter((job) => phase === undefined || phaseOf(job) === phase);
  return { jobs: matching.sort(newestFirst).slice(0, most), total: matching.length };
}

/**
 * One job, also one that is finished and gone.
 *
 * @throws RegistryError JOB_NOT_FOUND; the errors of the stores where it is in the local copy of
 * none.
 */
export async function readJob(deps: JobsDeps, jobId: string): Promise<Job> {
  // No store accepts them, let alone has them.
  if (jobId.length > ID_MAX_LENGTH || jobId.includes('\0')) throw notFound(jobId);
  const known = deps.directory.find(jobId);
  if (known !== undefined) return known;
  const found = await deps.misses.run(jobId, () => lookUp(deps, jobId));
  if (found === undefined) throw notFound(jobId);
  return found;
}

/** The history answers for what is gone even while the API server does not answer. */
async function lookUp({ jobs, history }: JobsDeps, jobId: string): Promise<Job | undefined> {
  const [stored, recorded] = await Promise.allSettled([jobs.fetch(jobId), history.findJob(jobId)]);
  if (stored.status === 'fulfilled' && stored.value !== undefined) return stored.value;
  if (recorded.status === 'fulfilled' && recorded.value !== undefined) return recorded.value;
  for (const outcome of [stored, recorded]) if (outcome.status === 'rejected') throw outcome.reason;
  return undefined;
}

interface Steering {
  readonly command: JobCommand;
  /** Of a call that may have been carried out before. */
  readonly firstAskedAt: Date | undefined;
}

/**
 * Ends the pause that a job is in, or rolls it back to the old version; a job that still waits for
 * its turn is cancelled. Asked for again, it is the same; a promotion asked for before the stage
 * began that the job is in now ended an earlier pause.
 *
 * @throws RegistryError JOB_NOT_FOUND, JOB_FINISHED, JOB_NOT_PAUSED, CONTENTION when it keeps
 * changing.
 */
export async function steerJob(
  { jobs, history }: Pick<JobsDeps, 'jobs' | 'history'>,
  jobId: string,
  { command, firstAskedAt }: Steering,
): Promise<Job> {
  for (let tries = 1; tries <= TRIES; tries += 1) {
    const job = (await jobs.fetch(jobId)) ?? (await history.findJob(jobId));
    if (job === undefined) throw notFound(jobId);
    if (isFinished(job)) {
      throw new RegistryError('JOB_FINISHED', `Job '${jobId}' has finished: it is ${phaseOf(job)}`);
    }
    if (command === 'promote' && firstAskedAt !== undefined && hasGoneOnSince(job, firstAskedAt)) return job;
    if (command === 'promote' && phaseOf(job) !== 'Paused') {
      throw new RegistryError('JOB_NOT_PAUSED', `Job '${jobId}' is not paused: it is ${phaseOf(job)}`);
    }
    if (command === 'promote' ? job.promoted : job.aborted) return job;
    const written = await jobs.command(job, command);
    if (written !== undefined) return written;
  }
  throw new RegistryError('CONTENTION', `Job '${jobId}' keeps changing; try again`);
}

function hasGoneOnSince({ stageStartedAt }: Job, at: Date): boolean {
  return stageStartedAt !== undefined && stageStartedAt > at;
}

/** A job that the operator has not observed yet waits. */
export function phaseOf({ phase = 'Pending' }: Pick<Job, 'phase'>): JobPhase {
  return phase;
}

export function isFinished(job: Pick<Job, 'phase'>): boolean {
  const phase = phaseOf(job);
  return phase === 'Succeeded' || phase === 'RolledBack' || phase === 'Failed';
}

function notFound(jobId: string): RegistryError {
  return new RegistryError('JOB_NOT_FOUND', `There is no job '${jobId}'`);
}

/**
 * Creation times have a precision of one second; ids order jobs of the same second, the same way on
 * every replica.
 */
function newestFirst(a: Job, b: Job): number {
  return b.createdAt.getTime() - a.createdAt.getTime() || (a.id < b.id ? 1 : -1);
}
