import type { DeliveryPolicySpec } from '@rollcall/crds/types.gen.ts';
import type { Deployment, HttpRoute, Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import { buildClusterView, buildSurroundings, concernedServices, type Knowledge } from './cluster-view.ts';
import type { DirectReads } from './direct-reads.ts';
import { canaryServiceName, extraDeploymentNames } from './names.ts';
import { isFinished } from './queue.ts';
import { jobUidOf, type Relations } from './relations.ts';
import type { QueueView, Surroundings, WorkloadView } from './snapshot.ts';
import type { Workloads } from './workloads.ts';

export interface WorkloadObserverDeps {
  readonly relations: Relations;
  readonly workloads: Workloads;
  readonly reads: DirectReads;
}

/** A job and by which policy it runs. */
interface Settled extends Knowledge {
  readonly policy: DeliveryPolicySpec;
}

/** Where a job's workload is, or was, and what its pods are labelled with. */
interface Place {
  readonly namespace: string;
  readonly podLabels: Readonly<Record<string, string>>;
}

/** Finds what a job delivers to, with all around it. @throws as the API server's client. */
export type ObserveWorkload = (settled: Settled, queue: QueueView) => Promise<WorkloadView>;

export function createWorkloadObserver({ relations, workloads, reads }: WorkloadObserverDeps): ObserveWorkload {
  async function routesFor(settled: Settled, { namespace }: Place, services: readonly Service[]) {
    const savedNames = new Set(settled.saved?.routes.map(({ name }) => name));
    if (savedNames.size === 0 && !usesRoutes(settled)) return undefined;
    const backends = new Set(services.map(({ metadata }) => metadata.name));
    const all = await reads.listRoutes(namespace);
    return all?.filter((route) => savedNames.has(route.metadata.name) || pointsAt(route, backends));
  }

  async function surroundingsOf(settled: Settled, place: Place): Promise<Surroundings> {
    const services = concernedServices(settled, place.namespace, place.podLabels);
    const routes = await routesFor(settled, place, services);
    return buildSurroundings({ ...settled, namespace: place.namespace, services, routes });
  }

  /** Names are taken or free when the job begins; who takes one later sees the job's. */
  async function takenNames({ job, saved }: Settled, deployment: Deployment, services: readonly Service[]) {
    if (saved !== undefined) return [];
    const { name, namespace = '' } = deployment.metadata;
    const isOthers = (object: Deployment | Service) => jobUidOf(object) !== job.metadata.uid;
    const found = await Promise.all(extraDeploymentNames(name).map((extra) => reads.findDeployment(namespace, extra)));
    const deployments = found.filter((extra) => extra !== undefined).filter(isOthers);
    const names = new Set(services.map(({ metadata }) => canaryServiceName(metadata.name)));
    const canaries = relations.services.get(namespace).filter(({ metadata }) => names.has(metadata.name));
    return [...deployments, ...canaries.filter(isOthers)].map(({ kind, metadata }) => `${kind} ${metadata.name}`);
  }

  async function around(settled: Settled, deployment: Deployment): Promise<WorkloadView> {
    const { namespace = '' } = deployment.metadata;
    const surroundings = await surroundingsOf(settled, { namespace, podLabels: labelsOf(deployment) });
    const taken = await takenNames(settled, deployment, surroundings.services);
    return { found: 'one', cluster: buildClusterView(settled, { surroundings, deployment, taken }) };
  }

  return async (settled, queue) => {
    const { job, saved } = settled;
    const reference = job.status?.workload;
    if (reference === undefined) {
      const isItsTurn = queue.ahead === undefined && !isFinished(job);
      const found = await workloads.findByName(job.spec.serviceName, isItsTurn);
      return found.found === 'one' ? around(settled, found.deployment) : found;
    }
    const deployment = await workloads.findByReference(reference);
    if (deployment !== undefined) return around(settled, deployment);
    const podLabels = saved?.deployment.template.metadata?.labels ?? {};
    return {
      found: 'gone',
      surroundings: await surroundingsOf(settled, { namespace: reference.namespace, podLabels }),
    };
  };
}

function labelsOf({ spec }: Deployment): Readonly<Record<string, string>> {
  return spec.template.metadata?.labels ?? {};
}

function usesRoutes({ job, saved, policy }: Settled): boolean {
  const strategy = saved?.strategy ?? job.spec.strategy ?? policy.strategy;
  return strategy === 'Canary' && policy.canary.trafficRouter === 'GatewayAPI';
}

/** Whether a rule sends anything to one of these Services of the route's own namespace. */
function pointsAt({ metadata, spec }: HttpRoute, services: ReadonlySet<string>): boolean {
  const backends = spec.rules?.flatMap(({ backendRefs }) => backendRefs ?? []) ?? [];
  return backends.some(
    ({ group = '', kind = 'Service', namespace = metadata.namespace, name }) =>
      group === '' && kind === 'Service' && namespace === metadata.namespace && services.has(name),
  );
}
