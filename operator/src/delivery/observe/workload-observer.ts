import type { DeliveryPolicySpec, DeliveryStrategy } from '@rollcall/crds/types.gen.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { Deployment, Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { QueueView, Surroundings, WorkloadView } from '../job/snapshot.ts';
import { strategyOf } from '../start/preflight.ts';
import { isFinished } from '../start/queue.ts';
import { traitsOf } from '../strategies/strategy.ts';
import { backendsOf } from '../traffic/http-route.ts';
import { buildClusterView, buildSurroundings, concernedServices, type Knowledge } from './cluster-view.ts';
import type { DirectReads } from './direct-reads.ts';
import type { EndpointCache } from './endpoint-cache.ts';
import type { Indexes } from './indexes.ts';
import { createObstacleObserver } from './obstacles.ts';
import type { RouteCache } from './route-cache.ts';
import type { WorkloadFinder } from './workload-finder.ts';

export interface WorkloadObserverDeps {
  readonly indexes: Indexes;
  readonly workloadFinder: WorkloadFinder;
  readonly reads: Pick<DirectReads, 'findDeployment' | 'findJob' | 'listPods'>;
  readonly routes: Pick<RouteCache, 'list'>;
  readonly endpoints: EndpointCache;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

/** A job and by which policy it runs. */
interface Settled extends Knowledge {
  readonly policy: DeliveryPolicySpec;
}

/** Where a job's workload is, or was, and what its pods are labelled with. */
interface Location {
  readonly namespace: string;
  readonly podLabels: Readonly<Record<string, string>>;
}

/** Finds what a job delivers to, with all around it. @throws as the API server's client. */
export type ObserveWorkload = (settled: Settled, queue: QueueView) => Promise<WorkloadView>;

export function createWorkloadObserver(deps: WorkloadObserverDeps): ObserveWorkload {
  const { indexes, workloadFinder } = deps;
  const observeObstacles = createObstacleObserver(deps);

  async function routesFor(settled: Settled, { namespace }: Location, services: readonly Service[]) {
    const savedNames = new Set(settled.saved?.routes.map(({ name }) => name));
    if (savedNames.size === 0 && !usesRoutes(settled)) return undefined;
    const backends = new Set(services.map(({ metadata }) => metadata.name));
    const all = await deps.routes.list(namespace);
    return all?.filter((route) => savedNames.has(route.metadata.name) || backendsOf(route, backends).length > 0);
  }

  async function endpointsFor({ job, saved }: Settled, { namespace }: Location, around: Surroundings) {
    if (saved === undefined || traitsOf(job.status?.stage)?.followsEndpoints !== true) return undefined;
    const names = [...saved.services.map(({ name }) => name), ...[...around.extraServices.values()].map(nameOf)];
    return names.length === 0 ? undefined : deps.endpoints.list(namespace, names);
  }

  async function surroundingsOf(settled: Settled, location: Location): Promise<Surroundings> {
    const services = concernedServices(settled, location.namespace, location.podLabels);
    const routes = await routesFor(settled, location, services);
    const surroundings = buildSurroundings({ ...settled, namespace: location.namespace, services, routes });
    return { ...surroundings, endpoints: await endpointsFor(settled, location, surroundings) };
  }

  async function around(settled: Settled, deployment: Deployment): Promise<WorkloadView> {
    const { namespace = '' } = deployment.metadata;
    const surroundings = await surroundingsOf(settled, { namespace, podLabels: labelsOf(deployment) });
    const { services } = surroundings;
    const obstacles = await observeObstacles(settled, { deployment, services, strategy: strategyFor(settled) });
    return { found: 'one', cluster: buildClusterView(settled, { surroundings, deployment, obstacles }) };
  }

  /**
   * What a job has left that returned to the queue, which forgets where it was, and was given up
   * there.
   */
  async function claimedBy(settled: Settled): Promise<WorkloadView> {
    const [deployment] = indexes.claimedDeployments.get(settled.job.metadata.uid ?? '');
    return deployment === undefined ? { found: 'none' } : around(settled, deployment);
  }

  return async (settled, queue) => {
    const { job, saved } = settled;
    const reference = job.status?.workload;
    if (reference === undefined) {
      // Nobody asks as long as the job waits: all waiting jobs would be observed with every event
      // of the one that runs.
      if (isFinished(job)) return claimedBy(settled);
      if (queue.ahead !== undefined) return { found: 'none' };
      const found = await workloadFinder.findByName(job.spec.serviceName);
      return found.found === 'one' ? around(settled, found.deployment) : found;
    }
    const deployment = await workloadFinder.findByReference(reference);
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

function nameOf({ metadata }: Service): string {
  return metadata.name;
}

function strategyFor({ job, saved, policy }: Settled): DeliveryStrategy {
  return saved?.strategy ?? strategyOf(job, policy);
}

function usesRoutes(settled: Settled): boolean {
  const { policy } = settled;
  return strategyFor(settled) === 'Canary' && policy.canary.trafficRouter === 'GatewayAPI';
}
