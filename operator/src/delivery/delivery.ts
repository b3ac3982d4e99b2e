import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { Lease } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import type { Registry } from 'prom-client';
import type { DeliveryConfig } from '../config.ts';
import type { Applier } from '../runtime/apply.ts';
import { type Controller, createController } from '../runtime/controller.ts';
import type { EventRecorder } from '../runtime/events.ts';
import { indexBy } from '../runtime/object-index.ts';
import type { RuntimeMetrics } from '../runtime/runtime-metrics.ts';
import { createCheckRunner } from './checks/check-runner.ts';
import { createDeliveryMetrics } from './metrics.ts';
import { watchConcernedJobs } from './observe/concerned-jobs.ts';
import { createDeliveryObserver } from './observe/delivery-observer.ts';
import { createDirectReads } from './observe/direct-reads.ts';
import { createEndpointCache } from './observe/endpoint-cache.ts';
import { createIndexes } from './observe/indexes.ts';
import type { DeliveryInformers } from './observe/informers.ts';
import { createMeasurements } from './observe/measurements.ts';
import { createRefusals } from './observe/refusals.ts';
import type { RouteCache } from './observe/route-cache.ts';
import type { SavedStateCache } from './observe/saved-state-cache.ts';
import { createWorkloadFinder } from './observe/workload-finder.ts';
import { createWorkloadObserver } from './observe/workload-observer.ts';
import { deploymentCache } from './observe/write-caches.ts';
import { deliveryReconciler } from './reconciler.ts';

/** Measurements under way at once, of all jobs. */
const MEASUREMENTS_AT_ONCE = 32;

export interface DeliveryDeps {
  readonly config: { readonly delivery: DeliveryConfig };
  /** How many jobs are worked on at once. */
  readonly concurrency: number;
  readonly connection: KubeConnection;
  /** Where Deployments may be delivered to; none: everywhere. */
  readonly deliveryNamespaces: readonly string[];
  /** Not started yet. */
  readonly informers: DeliveryInformers;
  /** As above, of what the registry keeps. */
  readonly registry: { readonly registrations: Informer<ServiceRegistration>; readonly leases: Informer<Lease> };
  /** Their write caches are among those of the applier. */
  readonly routes: RouteCache;
  readonly savedStates: SavedStateCache;
  readonly applier: Applier;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: RuntimeMetrics;
  readonly metricsRegistry: Registry;
}

/** The controller of DeliveryJobs with all that it needs. */
export type Delivery = Pick<Controller, 'start' | 'stop' | 'isBusy'>;

export function createDelivery(deps: DeliveryDeps): Delivery {
  const { config, connection, informers, registry, clock } = deps;
  const { artifact, checkAddresses } = config.delivery;
  const indexes = createIndexes(informers);
  const reads = createDirectReads(connection);
  const deployments = deploymentCache(informers).informer;
  const workloadFinder = createWorkloadFinder({
    indexes,
    reads,
    namespaces: deps.deliveryNamespaces,
    record: (deployment) => deployments.recordWrite(deployment),
  });
  const checkRunner = createCheckRunner(checkAddresses);
  const measurements = createMeasurements({
    checkRunner,
    clock,
    concurrency: MEASUREMENTS_AT_ONCE,
    onCompleted: (jobKey) => controller.enqueue(jobKey),
  });
  const refusals = createRefusals(clock);
  const observer = createDeliveryObserver({
    informers,
    indexes,
    registrations: {
      registrations: indexBy([registry.registrations], ({ spec }) => spec.serviceName),
      leases: registry.leases,
    },
    observeWorkload: createWorkloadObserver({
      indexes,
      workloadFinder,
      reads,
      routes: deps.routes,
      endpoints: createEndpointCache(reads, clock),
      clock,
    }),
    savedStates: deps.savedStates,
    measurements,
    refusals,
    artifact,
    clock,
  });
  const { store } = informers.jobs;
  const metrics = createDeliveryMetrics(deps.metricsRegistry, () => store.values());
  const reconciler = deliveryReconciler({
    jobs: store,
    observer,
    concurrency: deps.concurrency,
    metrics,
    events: deps.events,
    refusals,
    requeue: (jobKey) => controller.enqueue(jobKey),
  });
  const controller = createController(reconciler, deps);
  watchConcernedJobs({ informers, indexes, ...registry }, (jobKey) => controller.enqueue(jobKey));
  return {
    start: () => controller.start(),
    isBusy: () => controller.isBusy(),
    async stop() {
      await measurements.stop();
      await controller.stop();
      await checkRunner.close();
    },
  };
}
