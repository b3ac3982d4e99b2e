import { annotations, labels } from '@rollcall/crds/kinds.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import type { KubeObject } from '@rollcall/platform/kube/resource-client.ts';
import { versionOf } from '@rollcall/platform/kube/store.ts';
import { indexBy } from '../../runtime/object-index.ts';
import { isFinished, isLetGo, isRunning, jobOrder } from '../start/queue.ts';
import { claimOn } from '../workload/claim.ts';
import type { DeliveryInformers } from './informers.ts';

/** What belongs to what, so that no event and no observation has to go through everything. */
export type Indexes = ReturnType<typeof createIndexes>;

/** Must be made before the informers start. */
export function createIndexes(informers: DeliveryInformers) {
  const { jobs, policies, deployments, extraDeployments, replicaSets, pods, services } = informers;
  return {
    jobsByUid: indexBy([jobs], uidOf),
    /** Of the jobs of one service. */
    jobOrder: jobOrder(firstSeen([jobs])),
    /** By service name. */
    unfinishedJobs: indexBy([jobs], (job) => (isFinished(job) ? undefined : job.spec.serviceName)),
    /** By the namespace of the workload. */
    runningJobs: indexBy([jobs], (job) => (isRunning(job) ? job.status?.workload?.namespace : undefined)),
    /** By the uid of the Deployment that they have changed, or may have. */
    jobsByWorkload: indexBy([jobs], (job) => (isLetGo(job) ? undefined : job.status?.workload?.uid)),
    /** By service name. */
    policies: indexBy([policies], ({ spec }) => spec.serviceName),
    /** By service name. */
    deployments: indexBy(deployments, serviceNameOf),
    deploymentsByUid: indexBy(deployments, uidOf),
    /** By the uid of the job whose claim stands on them. */
    claimedDeployments: indexBy(deployments, (deployment) => claimOn(deployment)?.uid),
    /** By the uid of the job that made them. */
    extraDeployments: indexBy(extraDeployments, jobUidOf),
    extraDeploymentsByUid: indexBy(extraDeployments, uidOf),
    /** By the uid of their Deployment. */
    replicaSets: indexBy(replicaSets, controllerUidOf),
    replicaSetsByUid: indexBy(replicaSets, uidOf),
    /** By the uid of their ReplicaSet. */
    pods: indexBy(pods, controllerUidOf),
    /** By namespace. */
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
