import type { DeliveryJob, DeliveryStrategy } from '@rollcall/crds/types.gen.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { Deployment, Pod, Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Obstacles } from '../job/snapshot.ts';
import { isFinished } from '../start/queue.ts';
import { withoutPin } from '../traffic/selector.ts';
import { type Claim, claimInTheWay } from '../workload/claim.ts';
import { canaryServiceName, extraDeploymentNames } from '../workload/names.ts';
import { isInUse, type Knowledge } from './cluster-view.ts';
import type { DirectReads } from './direct-reads.ts';
import { controllerUidOf, type Indexes, jobUidOf } from './indexes.ts';
import { createReadCache } from './read-cache.ts';

/** A job that waits for a stable Deployment is observed with every event of its pods. */
const MAX_AGE_MS = 1000;

export interface ObstacleObserverDeps {
  readonly indexes: Indexes;
  readonly reads: Pick<DirectReads, 'findDeployment' | 'findJob' | 'listPods'>;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

interface Site {
  readonly deployment: Deployment;
  /** Services that select its pods. */
  readonly services: readonly Service[];
  readonly strategy: DeliveryStrategy;
}

/** Finds what is in a job's way where it is to begin. @throws as the API server's client. */
export type ObserveObstacles = (knowledge: Knowledge, site: Site) => Promise<Obstacles>;

export const noObstacles: Obstacles = { taken: [], leftovers: [], shared: [], abandonedClaim: undefined };

export function createObstacleObserver({ indexes, reads, clock }: ObstacleObserverDeps): ObserveObstacles {
  const recent = createReadCache<Omit<Obstacles, 'abandonedClaim'>>(clock, MAX_AGE_MS);
  /** By the text of the claim: what is abandoned once is so for ever. */
  const recentClaims = createReadCache<boolean>(clock, MAX_AGE_MS);

  /** Whether nobody will ever need again what is labelled with this job. */
  function isOver(jobUid: string | undefined): boolean {
    if (jobUid === undefined) return false;
    const [job] = indexes.jobsByUid.get(jobUid);
    return job === undefined || isFinished(job);
  }

  function isLeftover(object: Deployment | Service): boolean {
    if (!isOver(jobUidOf(object))) return false;
    return object.kind === 'Service' || (object.spec.replicas === 0 && (object.status?.replicas ?? 0) === 0);
  }

  async function inTheWay({ deployment, services }: Site): Promise<readonly (Deployment | Service)[]> {
    const { name, namespace = '' } = deployment.metadata;
    const found = await Promise.all(extraDeploymentNames(name).map((extra) => reads.findDeployment(namespace, extra)));
    const names = new Set(services.map(({ metadata }) => canaryServiceName(metadata.name)));
    const canaries = indexes.services.get(namespace).filter(({ metadata }) => names.has(metadata.name));
    return [...found.filter((extra) => extra !== undefined), ...canaries];
  }

  /** The owner of a ReplicaSet that is not in the copy yet is unknown. */
  function isOthers(pod: Pod, { metadata }: Deployment): boolean {
    if (!isInUse(pod) || jobUidOf(pod) !== undefined) return false;
    const owner = controllerUidOf(pod) ?? '';
    const [replicaSet] = indexes.replicaSetsByUid.get(owner);
    if (replicaSet !== undefined) return controllerUidOf(replicaSet) !== metadata.uid;
    return !pod.metadata.ownerReferences?.some(({ kind, uid }) => kind === 'ReplicaSet' && uid === owner);
  }

  async function sharedOf(service: Service, deployment: Deployment): Promise<Obstacles['shared']> {
    const { name, namespace = '' } = service.metadata;
    const selector = Object.entries(withoutPin(service)).map(([key, value]) => `${key}=${value}`);
    const pods = await reads.listPods(namespace, selector.join(','));
    const other = pods.find((pod) => isOthers(pod, deployment));
    return other === undefined ? [] : [{ service: name, pod: other.metadata.name }];
  }

  /**
   * Whether the job has left the pass in which it made this claim. The copy says whether it has
   * ended; else the API server is asked, whose answer is younger than the claim: a copy that does
   * not know the pass yet says the same as one that knows its end.
   */
  async function isAbandoned({ namespace, name, uid, startedAt }: Claim): Promise<boolean> {
    const [known] = indexes.jobsByUid.get(uid);
    if (known !== undefined && isFinished(known)) return true;
    const current = await reads.findJob(namespace, name);
    return current?.metadata.uid !== uid || isFinished(current) || current.status?.startedAt !== startedAt;
  }

  async function abandonedClaimOn(deployment: Deployment, job: DeliveryJob): Promise<string | undefined> {
    const claim = claimInTheWay({ deployment, abandonedClaim: undefined }, job);
    // The jobs of another installation cannot be seen.
    if (claim === undefined || claim.namespace !== job.metadata.namespace) return undefined;
    return (await recentClaims.get(claim.text, () => isAbandoned(claim))) ? claim.text : undefined;
  }

  async function read({ job }: Knowledge, site: Site): Promise<Omit<Obstacles, 'abandonedClaim'>> {
    const [objects, ...shared] = await Promise.all([
      inTheWay(site),
      ...site.services.map((service) => sharedOf(service, site.deployment)),
    ]);
    const others = objects.filter((object) => jobUidOf(object) !== job.metadata.uid);
    return {
      taken: others.filter((other) => !isLeftover(other)).map(({ kind, metadata }) => `${kind} ${metadata.name}`),
      leftovers: others.filter(isLeftover),
      shared: shared.flat(),
    };
  }

  return async (knowledge, site) => {
    const { job, saved } = knowledge;
    const abandonedClaim = await abandonedClaimOn(site.deployment, job);
    // Who gets into the way of a job that has begun finds it there. A rolling update makes nothing
    // beside the Deployment.
    const isFree = saved !== undefined || isFinished(job) || site.strategy === 'Rolling';
    if (isFree) return { ...noObstacles, abandonedClaim };
    const { uid = '' } = job.metadata;
    const found = await recent.get(uid, () => read(knowledge, site));
    // They are about to go.
    if (found.leftovers.length > 0) recent.forget(uid);
    return { ...found, abandonedClaim };
  };
}
