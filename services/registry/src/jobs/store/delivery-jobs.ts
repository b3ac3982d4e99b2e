import { annotations, deliveryJobKind, finalizers, isLabelValue, labels, objectNameFor } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { isAlreadyExists, isConflict, isInvalid, isNotFound } from '@rollcall/platform/kube/errors.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import { fieldSelector, listObjects } from '@rollcall/platform/kube/list.ts';
import {
  type Manifest,
  preconditionsOf,
  type ResourceClient,
  resourceClient,
} from '@rollcall/platform/kube/resource-client.ts';
import { versionOf } from '@rollcall/platform/kube/store.ts';
import { RegistryError } from '../../common/errors.ts';
import { refusal } from '../../kube/refusal.ts';
import type { Job, JobCommands, JobDirectory } from '../domain/jobs.ts';
import type { DeliveryJobStore, RequestedJob } from '../domain/requested-job.ts';

const OBJECT_NAME_MAX_LENGTH = 253;
const OBJECT_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** Jobs as custom resources, and the finalizer that keeps them until they are recorded. */
export interface DeliveryJobObjects extends DeliveryJobStore, JobCommands {
  /**
   * Adds our finalizer.
   *
   * @throws KubeApiError 409 when the object changed meanwhile; undefined: it is gone.
   */
  hold(object: DeliveryJob): Promise<DeliveryJob | undefined>;
  /** Removes our finalizer and no other one; as {@link hold}. */
  release(object: DeliveryJob): Promise<DeliveryJob | undefined>;
  /** Deletes it, and with it what it owns. @throws KubeApiError 409 when it changed meanwhile. */
  delete(object: DeliveryJob): Promise<void>;
}

export interface DeliveryJobsDeps {
  readonly connection: KubeConnection;
  readonly namespace: string;
  /** Called with every object that was created or commanded here. */
  readonly onWrite: (object: DeliveryJob) => void;
}

export function createDeliveryJobs({ connection, namespace, onWrite }: DeliveryJobsDeps): DeliveryJobObjects {
  const objects = resourceClient(connection, deliveryJobKind, namespace);

  return {
    async create(job) {
      for (;;) {
        try {
          onWrite(await objects.create(manifestOf(job)));
          return true;
        } catch (error) {
          if (isInvalid(error)) throw refusal(error, 'the job');
          if (!isAlreadyExists(error)) throw error;
        }
        const stored = await objects.find(objectNameOf(job.jobId));
        if (stored !== undefined) return isSameJob(stored, job);
      }
    },
    async fetch(jobId) {
      const object = await objects.find(objectNameOf(jobId));
      return object !== undefined && jobIdOf(object) === jobId ? toJob(object) : undefined;
    },
    async fetchOf(serviceName) {
      const query = { fieldSelector: fieldSelector('spec.serviceName', serviceName) };
      return (await listObjects(connection, deliveryJobKind, { namespace, query })).map(toJob);
    },
    async command(job, command) {
      try {
        // Set as it is, it would be no change, and so no generation that the operator has not acted
        // on.
        const isToReset = command === 'promote' && job.promoteUsed;
        const ready = isToReset ? toJob(await setSpec(objects, job, { promote: false })) : job;
        const object = await setSpec(objects, ready, { [command]: true });
        onWrite(object);
        return toJob(object);
      } catch (error) {
        if (isConflict(error) || isNotFound(error)) return undefined;
        throw error;
      }
    },
    hold: (object) => setFinalizers(objects, object, [...(object.metadata.finalizers ?? []), finalizers.history]),
    release: (object) =>
      setFinalizers(
        objects,
        object,
        (object.metadata.finalizers ?? []).filter((name) => name !== finalizers.history),
      ),
    delete: async ({ metadata }) => void (await objects.delete(metadata.name, preconditionsOf(metadata))),
  };
}

/** The jobs in the local copy. */
export function createJobDirectory(
  informer: Pick<Informer<DeliveryJob>, 'store' | 'hasSynced'>,
  namespace: string,
): JobDirectory {
  return {
    all() {
      if (informer.hasSynced()) return Array.from(informer.store.values(), toJob);
      throw new RegistryError('STORE_UNAVAILABLE', 'The jobs have not been read from the Kubernetes API yet');
    },
    find(jobId) {
      const object = informer.store.get(`${namespace}/${objectNameOf(jobId)}`);
      return object !== undefined && jobIdOf(object) === jobId ? toJob(object) : undefined;
    },
  };
}

/** The job id itself where it is a legal object name, else a slug and a hash of it. */
export function objectNameOf(jobId: string): string {
  const legal = jobId.length <= OBJECT_NAME_MAX_LENGTH && OBJECT_NAME.test(jobId);
  return legal ? jobId : objectNameFor(jobId);
}

/**
 * The annotation counts where it belongs to the name: an id leads to one object, and that one has
 * the id.
 */
function jobIdOf({ metadata }: DeliveryJob): string {
  const jobId = metadata.annotations?.[annotations.jobId];
  return jobId !== undefined && objectNameOf(jobId) === metadata.name ? jobId : metadata.name;
}

/** Of exactly the object that was seen. @throws KubeApiError 409 when it changed meanwhile. */
function setSpec(
  objects: ResourceClient<DeliveryJob>,
  { name, uid, revision }: Job,
  spec: Partial<DeliveryJob['spec']>,
): Promise<DeliveryJob> {
  const preconditions = { uid, ...(revision === undefined ? {} : { resourceVersion: String(revision) }) };
  return objects.patch(name, { spec }, preconditions);
}

/** Who asks for what is to be deployed by itself anyway, if it is newer, gets that job. */
function isSameJob(stored: DeliveryJob, job: RequestedJob): boolean {
  const { spec } = stored;
  const { artifact } = job.release;
  return (
    jobIdOf(stored) === job.jobId &&
    spec.serviceName === job.release.serviceName &&
    spec.operation === job.operation &&
    spec.version === job.release.version &&
    spec.artifact.url === artifact.url &&
    spec.artifact.type === artifact.type &&
    spec.artifact.checksum === artifact.checksum &&
    spec.strategy === job.strategy &&
    (spec.immediate ?? false) === job.immediate
  );
}

function manifestOf(job: RequestedJob): Manifest<DeliveryJob> {
  const { serviceName, version, artifact } = job.release;
  const name = objectNameOf(job.jobId);
  return {
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'DeliveryJob',
    metadata: {
      name,
      finalizers: [finalizers.history],
      ...(isLabelValue(serviceName) ? { labels: { [labels.service]: serviceName } } : {}),
      ...(name === job.jobId ? {} : { annotations: { [annotations.jobId]: job.jobId } }),
    },
    spec: {
      serviceName,
      operation: job.operation,
      version,
      artifact: {
        type: artifact.type,
        url: artifact.url,
        ...(artifact.checksum === undefined ? {} : { checksum: artifact.checksum }),
      },
      ...(job.strategy === undefined ? {} : { strategy: job.strategy }),
      requestedBy: job.requestedBy,
      ...(job.onlyIfNewer ? { onlyIfNewer: true } : {}),
      ...(job.immediate ? { immediate: true } : {}),
      abort: false,
      promote: false,
    },
  };
}

async function setFinalizers(
  objects: ResourceClient<DeliveryJob>,
  { metadata }: DeliveryJob,
  names: readonly string[],
): Promise<DeliveryJob | undefined> {
  try {
    return await objects.patch(metadata.name, { metadata: { finalizers: names } }, preconditionsOf(metadata));
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** The job as the domain sees it. */
export function toJob(object: DeliveryJob): Job {
  const { metadata, spec, status } = object;
  return {
    uid: metadata.uid ?? '',
    id: jobIdOf(object),
    name: metadata.name,
    operation: spec.operation,
    serviceName: spec.serviceName,
    version: spec.version,
    artifact: { url: spec.artifact.url, type: spec.artifact.type, checksum: spec.artifact.checksum },
    strategy: status?.strategy ?? spec.strategy,
    requestedBy: spec.requestedBy,
    createdAt: toDate(metadata.creationTimestamp) ?? new Date(0),
    phase: status?.phase,
    oldVersion: status?.oldVersion,
    oldArtifact: status?.oldArtifact === undefined ? undefined : { ...status.oldArtifact, checksum: undefined },
    stage: status?.stage,
    stageStartedAt: toDate(status?.stageStartedAt),
    step: status?.step,
    weight: status?.weight,
    actualWeight: status?.actualWeight,
    ...whyOf(status),
    startedAt: toDate(status?.startedAt),
    finishedAt: toDate(status?.finishedAt),
    checks: status?.analysis ?? [],
    milestones: (status?.milestones ?? []).map(({ at, ...rest }) => ({ ...rest, at: new Date(at) })),
    aborted: spec.abort,
    promoted: spec.promote && !isPromoteUsed(object),
    promoteUsed: spec.promote && isPromoteUsed(object),
    deleted: metadata.deletionTimestamp !== undefined,
    held: metadata.finalizers?.includes(finalizers.history) === true,
    attended: metadata.finalizers?.includes(finalizers.delivery) === true,
    revision: versionOf(object),
  };
}

/** The operator notes the generation whose promote it acted on; only a later one is a new one. */
function isPromoteUsed({ metadata, status }: DeliveryJob): boolean {
  return (metadata.generation ?? 0) <= (status?.promotedGeneration ?? -1);
}

/** What made a job fail says more than that it has failed. */
function whyOf(status: DeliveryJob['status']): Pick<Job, 'reason' | 'message'> {
  const { failure, reason, message, finishedAt } = status ?? {};
  if (failure === undefined) return { reason, message };
  return { reason: failure.reason, message: finishedAt === undefined ? (message ?? failure.message) : failure.message };
}

function toDate(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text);
}
