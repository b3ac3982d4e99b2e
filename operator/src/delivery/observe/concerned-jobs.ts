import type { DeliveryJob, DeliveryPolicy, ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Deployment, Lease, Pod, Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import type { KubeObject } from '@rollcall/platform/kube/resource-client.ts';
import { objectKey, type Change as StoreChange } from '@rollcall/platform/kube/store.ts';
import { policyFor } from '../start/default-policy.ts';
import { headOf, isFinished, isPaused, isRunning, NAMED_JOBS_LIMIT } from '../start/queue.ts';
import { selects } from '../traffic/selector.ts';
import { claimOn } from '../workload/claim.ts';
import { controllerUidOf, type Indexes, jobUidOf, serviceNameOf } from './indexes.ts';
import type { DeliveryInformers } from './informers.ts';
import type { DigestedReplicaSet } from './trim-workloads.ts';

export interface ConcernedJobsDeps {
  readonly informers: DeliveryInformers;
  /** Of the same informers, made before. */
  readonly indexes: Indexes;
  readonly registrations: Informer<ServiceRegistration>;
  readonly leases: Informer<Lease>;
}

/**
 * Returns, for every change of anything, which jobs have to be observed: through indexes, never by
 * going through all jobs.
 */
export function watchConcernedJobs(deps: ConcernedJobsDeps, enqueue: (jobKey: string) => void): void {
  const { informers, indexes, registrations, leases } = deps;
  const enqueueJob = (job: DeliveryJob | undefined) => {
    if (job !== undefined) enqueue(objectKey(job));
  };
  const enqueueService = (serviceName: string | undefined) => {
    if (serviceName !== undefined) enqueueJob(headOf(indexes.unfinishedJobs.get(serviceName), indexes.jobOrder));
  };
  const enqueueJobUid = (uid: string | undefined) => enqueueJob(indexes.jobsByUid.get(uid ?? '')[0]);

  /** Also when it has got another service's label since: who works on it, and who has only claimed it. */
  function ofDeployment(deployment: Deployment): void {
    enqueueService(serviceNameOf(deployment));
    indexes.jobsByWorkload.get(deployment.metadata.uid ?? '').forEach(enqueueJob);
    enqueueJobUid(claimOn(deployment)?.uid);
  }

  function ofDeploymentUid(uid: string | undefined): void {
    indexes.deploymentsByUid.get(uid ?? '').forEach(ofDeployment);
    for (const extra of indexes.extraDeploymentsByUid.get(uid ?? '')) enqueueJobUid(jobUidOf(extra));
  }

  function ofPod(pod: Pod): void {
    for (const replicaSet of indexes.replicaSetsByUid.get(controllerUidOf(pod) ?? '')) ofReplicaSet(replicaSet);
  }

  const ofReplicaSet = (replicaSet: DigestedReplicaSet) => ofDeploymentUid(controllerUidOf(replicaSet));
  const ofRegistration = ({ spec }: ServiceRegistration) => enqueueService(spec.serviceName);

  function ofService(service: Service): void {
    enqueueJobUid(jobUidOf(service));
    for (const job of indexes.runningJobs.get(service.metadata.namespace ?? '')) {
      const [deployment] = indexes.deploymentsByUid.get(job.status?.workload?.uid ?? '');
      // Without its Deployment nobody knows which Services the job concerns; there are few such
      // jobs.
      if (deployment === undefined || selects(service, deployment.spec.template.metadata?.labels ?? {}))
        enqueueJob(job);
    }
  }

  function ofLease(lease: Lease): void {
    const registration = registrations.store.get(objectKey(lease));
    if (registration !== undefined) ofRegistration(registration);
  }

  function ofPolicy({ spec }: DeliveryPolicy): void {
    const names = spec.serviceName === '*' ? indexes.unfinishedJobs.keys() : [spec.serviceName];
    for (const name of names) indexes.unfinishedJobs.get(name).forEach(enqueueJob);
  }

  /**
   * Whether a new job makes waiting ones pointless. Where it does not, they are not observed: there
   * may be very many.
   */
  const mayBeSuperseded = ({ serviceName, immediate }: DeliveryJob['spec']) =>
    immediate === true || policyFor(serviceName, indexes.policies.get).supersede;

  /** Jobs whose status says which job they wait for. */
  function enqueueWaiting(serviceName: string): void {
    const inOrder = indexes.unfinishedJobs.get(serviceName).toSorted(indexes.jobOrder);
    inOrder.slice(0, NAMED_JOBS_LIMIT + 1).forEach(enqueueJob);
  }

  follow(informers.deployments, ofDeployment);
  follow(informers.extraDeployments, (extra) => enqueueJobUid(jobUidOf(extra)));
  follow(informers.replicaSets, ofReplicaSet);
  follow(informers.pods, ofPod);
  follow(informers.services, ofService);
  follow([informers.policies], ofPolicy);
  follow([registrations], ofRegistration);
  follow([leases], ofLease);
  informers.jobs.onChange((change) => {
    enqueueJob(change.object);
    if (!changesQueue(change)) return;
    const { serviceName } = change.object.spec;
    enqueueService(serviceName);
    enqueueWaiting(serviceName);
    if (change.type === 'added' && mayBeSuperseded(change.object.spec))
      indexes.unfinishedJobs.get(serviceName).forEach(enqueueJob);
  });
}

/** A change has both the object and what it was: a selector or an owner may have moved. */
function follow<T extends KubeObject>(informers: readonly Informer<T>[], enqueueFor: (object: T) => void): void {
  for (const informer of informers) {
    informer.onChange((change) => {
      if (change.type === 'resync') return;
      enqueueFor(change.object);
      if (change.type === 'modified') enqueueFor(change.previous);
    });
  }
}

/**
 * Whether it may now be another job's turn, or waiting jobs have another to wait for or another
 * reason.
 */
function changesQueue(change: StoreChange<DeliveryJob>): boolean {
  if (change.type !== 'modified') return change.type !== 'resync';
  const { object, previous } = change;
  return [isFinished, isRunning, isPaused].some((is) => is(object) !== is(previous));
}
