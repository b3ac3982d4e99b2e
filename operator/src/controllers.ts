import { serviceRegistrationKind } from '@rollcall/crds/kinds.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import { endpointSliceKind, type Lease, leaseKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { listObjects } from '@rollcall/platform/kube/list.ts';
import { resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { objectKey } from '@rollcall/platform/kube/store.ts';
import { addressRules } from '@rollcall/platform/outbound/address-rules.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import type { Registry } from 'prom-client';
import type { OperatorConfig } from './config.ts';
import { createDelivery } from './delivery/delivery.ts';
import { createDirectReads } from './delivery/observe/direct-reads.ts';
import type { DeliveryInformers } from './delivery/observe/informers.ts';
import { createRouteCache } from './delivery/observe/route-cache.ts';
import { createSavedStateCache } from './delivery/observe/saved-state-cache.ts';
import { deliveryWriteCaches } from './delivery/observe/write-caches.ts';
import { dnsReconciler } from './dns/reconciler.ts';
import { createHealthCheckMetrics } from './health-checks/health-check-metrics.ts';
import { createHealthChecks, type HealthChecks } from './health-checks/health-checks.ts';
import { createProber } from './health-checks/prober.ts';
import type { Informers } from './informers.ts';
import { policyReconciler, watchPolicies } from './policies/reconciler.ts';
import { createQuotaCounter } from './quota.ts';
import { createRegistrationObserver } from './registration/observe.ts';
import { registrationReconciler } from './registration/reconciler.ts';
import { createRegistrationMetrics } from './registration/registration-metrics.ts';
import { createApplier } from './runtime/apply.ts';
import { informerConnectivity } from './runtime/connectivity.ts';
import { type Controller, type ControllerDeps, createController } from './runtime/controller.ts';
import type { EventRecorder } from './runtime/events.ts';
import type { RuntimeMetrics } from './runtime/runtime-metrics.ts';
import { createImportObserver, type ImportObserver } from './service-import/observe.ts';
import { planImport } from './service-import/plan.ts';
import { createStrays } from './strays.ts';

const IMPORT_CONCURRENCY = 4;
const POLICY_CONCURRENCY = 1;
const REGISTRATION_CONCURRENCY = 50;
const DELIVERY_CONCURRENCY = 20;
const DNS_CONCURRENCY = 5;
/** Within it, changes of one name in DNS are made together. */
const DNS_GATHER_MS = 200;
/** How much is worked on at once, each with at most one request to the API server under way. */
export const CONCURRENCY =
  IMPORT_CONCURRENCY + POLICY_CONCURRENCY + REGISTRATION_CONCURRENCY + DELIVERY_CONCURRENCY + DNS_CONCURRENCY;

export interface ControllersDeps {
  readonly config: Pick<OperatorConfig, 'retentionMs' | 'import' | 'delivery' | 'dns' | 'quota' | 'serviceAddresses'>;
  readonly connection: KubeConnection;
  readonly namespace: string;
  /** Where Deployments may be delivered to; none: everywhere. */
  readonly deliveryNamespaces: readonly string[];
  readonly fieldManager: string;
  /** Not started yet. */
  readonly informers: Informers;
  readonly events: EventRecorder;
  readonly leaderLease: () => Lease | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: RuntimeMetrics;
  readonly registry: Registry;
}

/** All controllers of the operator. They observe from the beginning and act once started. */
export function createControllers(deps: ControllersDeps) {
  const { config, connection, namespace, deliveryNamespaces, informers, events, clock, log, metrics } = deps;
  const mirrors = informers.dns === undefined ? [] : [informers.dns];
  const services = [...informers.services, ...informers.delivery.services, ...mirrors.map((each) => each.services)];
  const reads = createDirectReads(connection);
  const routes = createRouteCache(reads, clock);
  const savedStates = createSavedStateCache(reads, informers.delivery.jobs.store);
  const applier = createApplier({
    connection,
    fieldManager: deps.fieldManager,
    caches: [
      { kind: serviceRegistrationKind, informer: informers.registrations },
      { kind: leaseKind, informer: informers.leases },
      ...deliveryWriteCaches(informers.delivery, [...new Set(services)]),
      ...mirrors.map(({ slices }) => ({ kind: endpointSliceKind, informer: slices })),
      routes.writeCache,
      savedStates.writeCache,
    ],
    events,
  });
  const controlling = { applier, clock, log, metrics };
  const imports = config.import === undefined ? undefined : importObserver(deps, config.import.ttlMs);
  const checks = healthChecks(deps, (key) => registration.enqueue(key));
  const registration = registrationController(deps, controlling, { imports, checks });
  const delivery = createDelivery({
    config,
    concurrency: DELIVERY_CONCURRENCY,
    connection,
    deliveryNamespaces,
    informers: informers.delivery,
    registry: informers,
    routes,
    savedStates,
    applier,
    events,
    clock,
    log,
    metrics,
    metricsRegistry: deps.registry,
  });
  const all: Startable[] = [
    { controller: registration, ready: Promise.resolve() },
    // What is not in an incomplete copy must not count as gone.
    { controller: delivery, ready: informers.deliverySynced },
    { controller: policyController(informers.delivery, controlling), ready: informers.deliverySynced },
  ];
  if (imports !== undefined) {
    all.push({ controller: importController(controlling, imports, registration), ready: informers.importsSynced });
  }
  const dns = dnsController(deps, controlling);
  if (dns !== undefined) all.push({ controller: dns, ready: informers.dnsSynced });
  const strays = createStrays({ connection, namespace, namespaces: deliveryNamespaces, events, clock, log });
  const { quota: name } = config;
  const quota = name === undefined ? undefined : createQuotaCounter({ connection, namespace, name, log });
  let stopped = false;
  async function startWhenReady({ controller, ready }: Startable): Promise<void> {
    await ready;
    if (!stopped) controller.start();
  }
  return {
    /** Whether work is waiting. */
    isBusy: (): boolean => all.some(({ controller }) => controller.isBusy()),
    /** Call when this process leads and {@link Informers.start} has resolved. */
    start(): void {
      for (const startable of all) void startWhenReady(startable);
      checks.start();
      strays.start();
      quota?.start();
      const unsynced = informers.unsynced();
      if (unsynced !== undefined) log.warn({ unsynced }, 'not everything is worked on yet');
    },
    async stop(): Promise<void> {
      stopped = true;
      await checks.stop();
      await Promise.all([...all.map(({ controller }) => controller.stop()), strays.stop(), quota?.stop()]);
    },
  };
}

function healthChecks(deps: ControllersDeps, onChange: (key: string) => void): HealthChecks {
  const { config, informers, clock, log } = deps;
  return createHealthChecks({
    registrations: informers.registrations,
    prober: createProber(addressRules[config.serviceAddresses]),
    clock,
    log,
    metrics: createHealthCheckMetrics(deps.registry),
    onChange,
  });
}

interface Startable {
  readonly controller: Pick<Controller, 'start' | 'stop' | 'isBusy'>;
  /** Resolves when all that it decides on is known. */
  readonly ready: Promise<void>;
}

function policyController(informers: DeliveryInformers, controlling: ControllerDeps): Controller {
  const { clock } = controlling;
  const reconciler = policyReconciler({ informers, concurrency: POLICY_CONCURRENCY, clock });
  const controller = createController(reconciler, controlling);
  watchPolicies(informers, (policyKey) => controller.enqueue(policyKey));
  return controller;
}

/** Keeps the registrations of annotated Services; see docs/internals.md, "Import Kubernetes Services". */
function importController(controlling: ControllerDeps, imports: ImportObserver, registration: Controller): Controller {
  const controller = createController(
    {
      name: 'service-import',
      concurrency: IMPORT_CONCURRENCY,
      keys: () => imports.serviceKeys(),
      observe: (key) => imports.observe(key),
      plan: planImport,
    },
    controlling,
  );
  imports.onChange((serviceKey, registrationKeys) => {
    controller.enqueue(serviceKey);
    for (const key of registrationKeys) registration.enqueue(key);
  });
  return controller;
}

/** Keeps Services and EndpointSlices for registered names; see docs/decisions/0303. */
function dnsController(deps: ControllersDeps, controlling: ControllerDeps): Controller | undefined {
  const { config, informers, clock, namespace } = deps;
  if (config.dns === undefined || informers.dns === undefined) return undefined;
  const { registrations, dns } = informers;
  const reconciler = dnsReconciler(
    { registrations, ...dns, zone: config.dns, registrationNamespace: namespace, concurrency: DNS_CONCURRENCY, clock },
    (name) => controller.enqueueAfter(name, DNS_GATHER_MS),
  );
  const controller = createController(reconciler, controlling);
  return controller;
}

function importObserver({ informers, connection, clock, namespace }: ControllersDeps, ttlMs: number): ImportObserver {
  const { registrations, services, endpointSlices } = informers;
  return createImportObserver({
    registrations,
    services,
    endpointSlices,
    listSlices: (from, labelSelector) =>
      listObjects(connection, endpointSliceKind, { namespace: from, query: { labelSelector } }),
    connectivity: informerConnectivity([...services, ...endpointSlices], clock),
    clock,
    namespace,
    ttlMs,
  });
}

function registrationController(
  deps: ControllersDeps,
  controlling: ControllerDeps,
  { imports, checks }: { readonly imports: ImportObserver | undefined; readonly checks: HealthChecks },
): Controller {
  const { informers, events, leaderLease, clock, log, config, registry } = deps;
  const { registrations, leases } = informers;
  const observer = createRegistrationObserver({
    registrations,
    leases,
    leaseClient: resourceClient(deps.connection, leaseKind, deps.namespace),
    connectivity: informerConnectivity([registrations, leases], clock),
    endpoints: imports,
    checks,
    clock,
    retentionMs: config.retentionMs,
    onEarlierDeadline: (key, deadlineMs) => controller.enqueueAfter(key, deadlineMs - clock.monotonicMs()),
  });
  const reconciler = registrationReconciler({
    store: registrations.store,
    observer,
    concurrency: REGISTRATION_CONCURRENCY,
    clock,
    log,
    events,
    leaderLease,
    metrics: createRegistrationMetrics(registry, () => observer.census()),
  });
  const controller = createController(reconciler, controlling);
  registrations.onChange(({ type, object }) => {
    if (type !== 'deleted') controller.enqueue(objectKey(object));
  });
  // Heartbeats only move deadlines, which are found to have moved when they come: no reconcile for
  // each of them.
  leases.onChange(({ type, object }) => {
    if (type === 'deleted') controller.enqueue(objectKey(object));
  });
  return controller;
}
