import { isPreRelease, isUpdate } from '@rollcall/platform/version-order.ts';
import type { HistoryStore } from '../../releases/domain/history-store.ts';
import type { Release } from '../../releases/domain/release.ts';
import { type ReleasesDeps, runningVersion } from '../../releases/domain/releases.ts';
import { newJob } from './job-requests.ts';
import { isFinished, type JobCommands } from './jobs.ts';
import type { DeliveryJobStore, DeliveryStrategy } from './requested-job.ts';

/** How jobs of a service are run, as far as the registry is concerned. */
export interface Policy {
  readonly strategy: DeliveryStrategy;
  /** Whether an announced version is deployed without a deploy call. */
  readonly autoDeploy: boolean;
  /** Whether that is true of pre-releases too. */
  readonly preReleases: boolean;
}

export interface PolicyStore {
  /**
   * The service's own policy, else the one for all services; undefined without either. From the
   * local copy.
   */
  find(serviceName: string): Policy | undefined;
  /** As {@link find}, from the backing store itself. */
  fetch(serviceName: string): Promise<Policy | undefined>;
}

/** A release that is to be deployed by itself. */
export interface AutomaticDeployment {
  readonly release: Release;
  readonly at: Date;
}

/**
 * Which releases were made a job of by themselves: each once, even where a replica dies in between.
 */
export interface AutomaticDeployments {
  /**
   * Does the work of one service at a time, whichever replica asks for it.
   *
   * @throws RegistryError OVERLOADED at once when too much of it waits.
   */
  alone<T>(serviceName: string, work: () => Promise<T>): Promise<T>;
  /**
   * @returns when the release was first to be deployed, which is what its job is named after;
   * undefined where its job was created, or where it was delivered, or tried, in another way.
   */
  begin(deployment: AutomaticDeployment): Promise<Date | undefined>;
  /** Its job has been created. */
  end(release: Release): Promise<void>;
}

export interface AutoDeployDeps extends ReleasesDeps {
  readonly history: ReleasesDeps['history'] & Pick<HistoryStore, 'recorded'>;
  readonly policies: Pick<PolicyStore, 'fetch'>;
  readonly automatic: AutomaticDeployments;
  readonly jobs: Pick<DeliveryJobStore, 'create'> & Pick<JobCommands, 'fetchOf'>;
}

/** Whether the version of the service is deployed once it is announced. */
export async function deploysAutomatically(
  { policies }: Pick<AutoDeployDeps, 'policies'>,
  { serviceName, version }: Pick<Release, 'serviceName' | 'version'>,
): Promise<boolean> {
  const policy = await policies.fetch(serviceName);
  return policy?.autoDeploy === true && (policy.preReleases || !isPreRelease(version));
}

/**
 * Makes a job of a release that was just announced, one that {@link deploysAutomatically}, where
 * the version is newer than what runs and than what is under way. Announced again, it makes no
 * other job. Of versions that are announced at the same moment, at whatever replicas, the newest
 * has the last job.
 *
 * @returns the id of the job; undefined when none is to be made.
 * @throws the stores' errors: announced again, it is tried again.
 */
export async function deployAutomatically(
  deps: AutoDeployDeps,
  deployment: AutomaticDeployment,
): Promise<string | undefined> {
  const { release } = deployment;
  return deps.automatic.alone(release.serviceName, async () => {
    if (!(await isNewest(deps, release))) return undefined;
    const at = await deps.automatic.begin(deployment);
    if (at === undefined) return undefined;
    // What a Deployment runs that nobody has reported, only the operator can see.
    const wish = { operation: 'Deploy', strategy: undefined, requestedBy: 'auto-deploy', onlyIfNewer: true } as const;
    const job = newJob({ ...wish, release, at });
    // A different job of this id was asked for in the same second, for the same version: that one
    // will do.
    await deps.jobs.create(job);
    await deps.automatic.end(release);
    return job.jobId;
  });
}

/** Older versions that are announced late must not follow newer ones that wait or run. */
async function isNewest(deps: AutoDeployDeps, { serviceName, version }: Release): Promise<boolean> {
  // Another replica may just have made one. Read before the history, lest one that ends meanwhile
  // is in neither.
  const jobs = await deps.jobs.fetchOf(serviceName);
  const delivered = jobs.filter(({ phase, held }) => phase === 'Succeeded' && held);
  const recorded = await deps.history.recorded(delivered.map(({ uid }) => uid));
  const running = await runningVersion(deps, serviceName);
  const ahead = [...jobs.filter((job) => !isFinished(job)), ...delivered.filter(({ uid }) => !recorded.has(uid))];
  return isUpdate(running, version) && ahead.every((job) => isUpdate(job.version, version));
}
