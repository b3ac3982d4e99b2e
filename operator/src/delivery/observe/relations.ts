import { annotations, labels } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob, DeliveryPolicy } from '@rollcall/crds/types.gen.ts';
import type { Deployment, Pod, Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import type { KubeObject } from '@rollcall/platform/kube/resource-client.ts';
import { versionOf } from '@rollcall/platform/kube/store.ts';
import { isFinished, isRunning, type JobOrder, jobOrder } from '../start/queue.ts';
import { claimOn } from '../workload/claim.ts';
import type { DeliveryInformers } from './informers.ts';
import { indexBy, type ObjectIndex } from './object-index.ts';
import type { DigestedReplicaSet } from './trim.ts';

/** What belongs to what, so that no event and no observation has to go through everything. */
export interface Relations {
  readonly jobsByUid: ObjectIndex<DeliveryJob>;
  /** By service name. */
  readonly unfinishedJobs: ObjectIndex<DeliveryJob>;
  /** Of the jobs of one service. */
  readonly jobOrder: JobOrder;
  /** By the namespace of the workload. */
  readonly runningJobs: ObjectIndex<DeliveryJob>;
  /** By service name. */
  readonly policies: ObjectIndex<DeliveryPolicy>;
  /** By service name. */
  readonly deployments: ObjectIndex<Deployment>;
  readonly deploymentsByUid: ObjectIndex<Deployment>;
  /** By the uid of the job whose claim stands on them. */
  readonly claimedDeployments: ObjectIndex<Deployment>;
  /** By the uid of the job that made them. */
  readonly extraDeployments: ObjectIndex<Deployment>;
  readonly extraDeploymentsByUid: ObjectIndex<Deployment>;
  /** By the uid of their Deployment. */
  readonly replicaSets: ObjectIndex<DigestedReplicaSet>;
  readonly replicaSetsByUid: ObjectIndex<DigestedReplicaSet>;
  /** By the uid of their ReplicaSet. */
  readonly pods: ObjectIndex<Pod>;
  /** By namespace. */
  readonly services: ObjectIndex<Service>;
}

/** Must be made before the informers start. */
export function createRelations(informers: DeliveryInformers): Relations {
  const { jobs, policies, deployments, extraDeployments, replicaSets, pods, services } = informers;
  return {
    jobsByUid: indexBy([jobs], uidOf),
    jobOrder: jobOrder(firstSeen([jobs])),
    unfinishedJobs: indexBy([jobs], (job) => (isFinished(job) ? undefined : job.spec.serviceName)),
    runningJobs: indexBy([jobs], (job) => (isRunning(job) ? job.status?.workload?.namespace : undefined)),
    policies: indexBy([policies], ({ spec }) => spec.serviceName),
    deployments: indexBy(deployments, serviceNameOf),
    deploymentsByUid: indexBy(deployments, uidOf),
    claimedDeployments: indexBy(deployments, (deployment) => claimOn(deployment)?.uid),
    extraDeployments: indexBy(extraDeployments, jobUidOf),
    extraDeploymentsByUid: indexBy(extraDeployments, uidOf),
    replicaSets: indexBy(replicaSets, controllerUidOf),
    replicaSetsByUid: indexBy(replicaSets, uidOf),
    pods: indexBy(pods, controllerUidOf),
    services: indexBy(services, ({ metadata }) => metadata.namespace),
  };
}

/**
 * The resource version in which each object was first seen here: for what is created meanwhile,
 * that of its creation.
 */
function firstSeen<T extends KubeObject>(informers: readonly Informer<T>[]): (object: T) => number {
  const versions = new Map<string, number>();
  for (const informer of informers) {
    informer.onChange(({ type, object }) => {
      const { uid = '' } = object.metadata;
      if (type === 'added') versions.set(uid, versionOf(object));
      else if (type === 'deleted') versions.delete(uid);
    });
  }
  return ({ metadata }) => versions.get(metadata.uid ?? '') ?? 0;
}

/**
 * The service that a Deployment runs, by its label, or by its annotation where the name is no legal
 * label value.
 */
export function serviceNameOf({ metadata }: KubeObject): string | undefined {
  const label = metadata.labels?.[labels.service];
  return label === 'true' ? (metadata.annotations?.[annotations.serviceName] ?? label) : label;
}

export function jobUidOf({ metadata }: KubeObject): string | undefined {
  return metadata.labels?.[labels.job];
}

export function controllerUidOf({ metadata }: KubeObject): string | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid;
}

function uidOf({ metadata }: KubeObject): string | undefined {
  return metadata.uid;
}
