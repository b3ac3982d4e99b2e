import { annotations, deliveryJobKind, finalizers, labels, objectNameFor } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { isAlreadyExists, isInvalid, isNotFound } from '@rollcall/platform/kube/errors.ts';
import { type Manifest, type ResourceClient, resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import type { DeliveryJobStore, JobComparison, RequestedJob } from '../domain/delivery-ports.ts';
import type { ObservedJob } from '../domain/recorder.ts';
import { refusal } from './refusal.ts';

const OBJECT_NAME_MAX_LENGTH = 253;
const OBJECT_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const LABEL_VALUE = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/** Jobs as custom resources, and the finalizer that keeps them until they are recorded. */
export interface DeliveryJobObjects extends DeliveryJobStore {
  /** Adds our finalizer. @throws KubeApiError 409 when the object changed meanwhile; undefined: it is gone. */
  hold(object: DeliveryJob): Promise<DeliveryJob | undefined>;
  /** Removes our finalizer and no other one; as {@link hold}. */
  release(object: DeliveryJob): Promise<DeliveryJob | undefined>;
}

export function createDeliveryJobs(connection: KubeConnection, namespace: string): DeliveryJobObjects {
  const objects = resourceClient(connection, deliveryJobKind, namespace);

  async function compare(job: RequestedJob): Promise<JobComparison> {
    const stored = await objects.find(objectNameOf(job.jobId));
    if (stored === undefined) return 'absent';
    return isSameJob(stored, job) ? 'same' : 'different';
  }

  return {
    compare,
    async create(job) {
      for (;;) {
        try {
          await objects.create(manifestOf(job));
          return 'absent';
        } catch (error) {
          if (isInvalid(error)) throw refusal(error, 'the job');
          if (!isAlreadyExists(error)) throw error;
        }
        const comparison = await compare(job);
        if (comparison !== 'absent') return comparison;
      }
    },
    hold: (object) => setFinalizers(objects, object, [...(object.metadata.finalizers ?? []), finalizers.history]),
    release: (object) =>
      setFinalizers(
        objects,
        object,
        (object.metadata.finalizers ?? []).filter((name) => name !== finalizers.history),
      ),
  };
}

/** The job id itself where it is a legal object name, else a slug and a hash of it. */
function objectNameOf(jobId: string): string {
  const legal = jobId.length <= OBJECT_NAME_MAX_LENGTH && OBJECT_NAME.test(jobId);
  return legal ? jobId : objectNameFor(jobId);
}

function jobIdOf({ metadata }: DeliveryJob): string {
  return metadata.annotations?.[annotations.jobId] ?? metadata.name;
}

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
    spec.strategy === job.strategy
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
      ...(LABEL_VALUE.test(serviceName) ? { labels: { [labels.service]: serviceName } } : {}),
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
  const { name, uid, resourceVersion } = metadata;
  const preconditions = {
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
  try {
    return await objects.patch(name, { metadata: { finalizers: names } }, preconditions);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** The job as the domain sees it. */
export function toObservedJob({ metadata, spec, status }: DeliveryJob): ObservedJob {
  return {
    uid: metadata.uid ?? '',
    name: metadata.name,
    operation: spec.operation,
    serviceName: spec.serviceName,
    version: spec.version,
    artifact: { url: spec.artifact.url, type: spec.artifact.type, checksum: spec.artifact.checksum },
    requestedBy: spec.requestedBy,
    phase: status?.phase,
    oldVersion: status?.oldVersion,
    startedAt: toDate(status?.startedAt),
    finishedAt: toDate(status?.finishedAt),
    deleted: metadata.deletionTimestamp !== undefined,
    held: metadata.finalizers?.includes(finalizers.history) === true,
  };
}

function toDate(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text);
}
