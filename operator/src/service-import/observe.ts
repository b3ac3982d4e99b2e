import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { EndpointSlice, Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import { objectKey, type Change as StoreChange } from '@rollcall/platform/kube/store.ts';
import type { EndpointLiveness } from '../registration/observe.ts';
import { type Connectivity, graceEndMs } from '../runtime/connectivity.ts';
import { indexBy } from '../runtime/object-index.ts';
import { type Desired, desiredRegistration, importedFrom, isAnnotated, mentionsRegistration } from './desired.ts';
import { type WantedRegistration, wantedInstances } from './endpoints.ts';
import type { ImportSnapshot } from './plan.ts';
import { createReadiness } from './readiness.ts';
import { createServiceEndpoints, type ServiceEndpoints, type ServiceEndpointsDeps } from './service-endpoints.ts';
import { serviceKeyOf } from './trim-services.ts';

export interface ImportObserverDeps extends Pick<ServiceEndpointsDeps, 'endpointSlices' | 'listSlices'> {
  readonly registrations: Informer<ServiceRegistration>;
  /** One per namespace that Services are imported from, or a single one of all namespaces. */
  readonly services: readonly Informer<Service>[];
  /** Over all of the above. */
  readonly connectivity: Connectivity;
  readonly clock: Clock;
  /** Where registrations are made. */
  readonly namespace: string;
  /** A registration expires when it had no ready endpoint for this long. */
  readonly ttlMs: number;
}

type Listener = (serviceKey: string, registrationKeys: readonly string[]) => void;

/** Follows all informers from before they start, whether this process leads or not. */
export interface ImportObserver extends EndpointLiveness {
  /** @throws as the API server's client, when endpoints have to be read from there. */
  observe(serviceKey: string): Promise<ImportSnapshot>;
  /**
   * Every Service that may have something to do: annotated, or with a registration made from it.
   */
  serviceKeys(): Iterable<string>;
  /**
   * @param listener called with a Service that may have something to do, and those registrations
   * made from it whose life may have changed with it.
   */
  onChange(listener: Listener): void;
}

export function createImportObserver(deps: ImportObserverDeps): ImportObserver {
  const { registrations, services, endpointSlices, clock, ttlMs } = deps;
  const findService = (serviceKey: string) => findIn(services, serviceKey);
  const imported = indexBy([registrations], importedFrom);
  const byServiceName = indexBy([registrations], ({ spec }) => spec.serviceName);
  const endpoints = createServiceEndpoints({ endpointSlices, listSlices: deps.listSlices, findService });
  const readiness = createReadiness(endpoints, clock);
  const listeners: Listener[] = [];

  function notify(serviceKey: string, changed: readonly ServiceRegistration[]): void {
    const service = findService(serviceKey);
    const isMentioned = service !== undefined && mentionsRegistration(service);
    if (!isMentioned && imported.get(serviceKey).length === 0) return;
    for (const listener of listeners) listener(serviceKey, changed.map(objectKey));
  }

  function onService({ object }: StoreChange<Service>): void {
    const serviceKey = objectKey(object);
    endpoints.changed(serviceKey);
    const own = imported.get(serviceKey);
    for (const registration of own) readiness.look(registration);
    notify(serviceKey, own);
  }

  function onSlice(change: StoreChange<EndpointSlice>): void {
    if (change.type === 'resync') return;
    const before = change.type === 'modified' ? serviceKeyOf(change.previous) : undefined;
    for (const serviceKey of new Set([before, serviceKeyOf(change.object)])) {
      if (serviceKey !== undefined) onEndpoints(serviceKey);
    }
  }

  /** All Services of the cluster pass here. */
  function onEndpoints(serviceKey: string): void {
    endpoints.changed(serviceKey);
    const changed = imported.get(serviceKey).filter((registration) => readiness.look(registration));
    if (endpoints.areWanted(serviceKey) || changed.length > 0) notify(serviceKey, changed);
  }

  function onRegistration(change: StoreChange<ServiceRegistration>): void {
    const serviceKey = importedFrom(change.object);
    if (serviceKey === undefined) return;
    if (change.type === 'deleted') readiness.forget(change.object);
    else readiness.look(change.object);
    // A Service may have a thousand, and each has its status written.
    const isStatus = change.type === 'modified' && isSameForImport(change.previous, change.object);
    if (!isStatus) notify(serviceKey, []);
  }

  for (const informer of services) informer.onChange(onService);
  for (const informer of endpointSlices) informer.onChange(onSlice);
  registrations.onChange(onRegistration);

  return {
    async observe(serviceKey) {
      await endpoints.complete(serviceKey);
      const service = findService(serviceKey);
      const desired = service === undefined ? ({ wanted: 'nothing' } as const) : desiredRegistration(service);
      const namesakes = 'spec' in desired ? byServiceName.get(desired.spec.serviceName) : [];
      return {
        serviceKey,
        service,
        desired,
        wanted: wantedBy(desired, endpoints, serviceKey),
        imported: imported.get(serviceKey),
        others: namesakes.filter((each) => importedFrom(each) !== serviceKey),
        namespace: deps.namespace,
      };
    },
    *serviceKeys() {
      yield* imported.keys();
      for (const { store } of services) {
        for (const service of store.values()) if (mentionsRegistration(service)) yield objectKey(service);
      }
    },
    onChange: (listener) => void listeners.push(listener),
    liveness: (registration) => ({
      by: 'endpoints',
      ttlMs,
      deadlineMs: deadlineMs(deps, readiness.unreadySinceMs(registration)),
      ready: readiness.isEndpointReady(registration),
    }),
    keeps(registration) {
      // The instance of an endpoint is made anew only when that is ready.
      if (registration.spec.instanceId !== undefined) return false;
      const service = findService(importedFrom(registration) ?? '');
      return service !== undefined && isAnnotated(service);
    },
  };
}

/** Undefined while the endpoints are not known. */
function wantedBy(
  desired: Desired,
  endpoints: ServiceEndpoints,
  serviceKey: string,
): readonly WantedRegistration[] | undefined {
  if (desired.wanted === 'registration') return [{ spec: desired.spec, ready: endpoints.hasReady(serviceKey) }];
  if (desired.wanted !== 'instances') return [];
  const known = endpoints.of(serviceKey);
  return known === undefined ? undefined : wantedInstances(desired, known);
}

function deadlineMs(
  { connectivity, ttlMs }: Pick<ImportObserverDeps, 'connectivity' | 'ttlMs'>,
  unreadySinceMs: number | undefined,
): number | undefined {
  const connectedSinceMs = connectivity.sinceMs();
  if (unreadySinceMs === undefined || connectedSinceMs === undefined) return undefined;
  return Math.max(unreadySinceMs + ttlMs, graceEndMs(connectedSinceMs, ttlMs));
}

function isSameForImport(previous: ServiceRegistration, next: ServiceRegistration): boolean {
  return previous.metadata.generation === next.metadata.generation && previous.status?.phase === next.status?.phase;
}

function findIn(services: readonly Informer<Service>[], serviceKey: string): Service | undefined {
  for (const { store } of services) {
    const service = store.get(serviceKey);
    if (service !== undefined) return service;
  }
  return undefined;
}
