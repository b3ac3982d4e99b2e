import { RegistryError } from '../../common/errors.ts';
import { checkServiceName } from '../../common/validation.ts';
import type { Release, ReleaseStore } from '../../releases/domain/release.ts';
import { checkRelease, checkVersion } from '../../releases/domain/release-input.ts';
import type { DeliveryJobStore, DeliveryOperation, DeliveryStrategy, RequestedJob } from './requested-job.ts';

const REQUESTED_BY_MAX_LENGTH = 253;

export interface DeploymentInput {
  readonly release: Release;
  readonly strategy: DeliveryStrategy | undefined;
  /** The authenticated caller; undefined where nobody has to say who he is. */
  readonly subject: string | undefined;
  /** When it was asked for: the job is named after the second. */
  readonly at: Date;
}

export interface RollbackInput {
  readonly serviceName: string;
  readonly version: string;
  /** Undefined: as the policy of the service says. */
  readonly strategy: DeliveryStrategy | undefined;
  /** Whether it goes before all other jobs, and as fast as can be. */
  readonly immediate: boolean;
  readonly subject: string | undefined;
  readonly at: Date;
}

export interface DeliveryRequestsDeps {
  readonly jobs: DeliveryJobStore;
  readonly releases: ReleaseStore;
}

/**
 * Asks for a version to be deployed. The same call twice within a second is one job.
 *
 * @returns the job's id.
 * @throws RegistryError INVALID_SERVICE_NAME, INVALID_REQUEST; JOB_CONFLICT when a different job
 * has the id.
 */
export async function requestDeployment(deps: DeliveryRequestsDeps, input: DeploymentInput): Promise<string> {
  const { release, strategy, at } = input;
  checkRelease(release);
  const job = newJob({ operation: 'Deploy', release, strategy, requestedBy: requesterOf(input), at });
  // What is refused must not become what is rolled back to. What a crash leaves unrecorded is
  // recorded when it has succeeded.
  return deps.releases.recordWith(release, () => createJob(deps, job));
}

/**
 * Asks for a version that was announced or delivered before.
 *
 * @returns the job's id.
 * @throws RegistryError RELEASE_NOT_FOUND, and as {@link requestDeployment}.
 */
export async function requestRollback(deps: DeliveryRequestsDeps, input: RollbackInput): Promise<string> {
  checkServiceName(input.serviceName);
  checkVersion(input.version);
  const release = await deps.releases.find(input.serviceName, input.version);
  if (release === undefined) {
    const message = `Version '${input.version}' of service '${input.serviceName}' was never announced or deployed`;
    throw new RegistryError('RELEASE_NOT_FOUND', message);
  }
  const { at, immediate, strategy } = input;
  if (immediate && strategy !== undefined && strategy !== 'Rolling') {
    throw new RegistryError('INVALID_REQUEST', 'An immediate rollback is rolling: leave strategy out, or immediate');
  }
  const requestedBy = requesterOf(input);
  return createJob(deps, newJob({ operation: 'Rollback', release, strategy, requestedBy, immediate, at }));
}

type JobRequest = Omit<RequestedJob, 'jobId' | 'onlyIfNewer' | 'immediate'> &
  Partial<RequestedJob> & { readonly at: Date };

/** A job with the documented id. */
export function newJob({ at, onlyIfNewer = false, immediate = false, ...job }: JobRequest): RequestedJob {
  return { ...job, onlyIfNewer, immediate, jobId: jobId(job.operation, job.release, at) };
}

function requesterOf({ subject = 'webhook' }: { readonly subject: string | undefined }): string {
  return subject.slice(0, REQUESTED_BY_MAX_LENGTH);
}

async function createJob({ jobs }: DeliveryRequestsDeps, job: RequestedJob): Promise<string> {
  if (await jobs.create(job)) return job.jobId;
  throw new RegistryError('JOB_CONFLICT', `A different job with the id '${job.jobId}' exists; try again in a second`);
}

function jobId(operation: DeliveryOperation, { serviceName, version }: Release, at: Date): string {
  return `${operation.toLowerCase()}-${serviceName}-${version}-${Math.floor(at.getTime() / 1000)}`;
}
