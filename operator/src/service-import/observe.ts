import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { EndpointSlice, Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import { objectKey, type Change as StoreChange } from '@rollcall/platform/kube/store.ts';
import type { EndpointLiveness } from '../registration/observe.ts';
import { type Connectivity, graceEndMs } from '../runtime/connectivity.ts';
import { indexBy } from '../runtime/object-index.ts';
import { desiredRegistration, importedFrom, isAnnotated, mentionsRegistration } from './desired.ts';
import type { ImportSnapshot } from './plan.ts';
import { createReadiness } from './readiness.ts';
import { hasReadyEndpoint, SERVICE_LABEL } from './trim-services.ts';

export interface ImportObserverDeps {
  readonly registrations: Informer<ServiceRegistration>;
  /** One per namespace that Services are imported from, or a single one of all namespaces. */
  readonly services: readonly Informer<Service>[];
  readonly endpointSlices: readonly Informer<EndpointSlice>[];
  /** Over all of the above. */
  readonly connectivity: Connectivity;
  readonly clock: Clock;
  /** Where registrations are made. */
  readonly namespace: string;
  /** A registration expires when its Service had no ready endpoint for this long. */
  readonly ttlMs: number;
}

/** Follows all informers from before they start, whether this process leads or not. */
export interface ImportObserver extends EndpointLiveness {
  observe(serviceKey: string): ImportSnapshot;
  /**
   * Every Service that may have something to do: annotated, or with a registration made from it.
   */
  serviceKeys(): Iterable<string>;
  /**
   * @param listener called with a Service that may have something to do, and the registrations made
   * from it.
   */
  onChange(listener: (serviceKey: string, registrationKeys: readonly string[]) => void): void;
}

export function createImportObserver(deps: ImportObserverDeps): ImportObserver {
  const { registrations, services, endpointSlices, connectivity, clock, ttlMs } = deps;
  const readiness = createReadiness();
  const imported = createImportIndex();
  const byServiceName = indexBy([registrations], ({ spec }) => spec.serviceName);
  const listeners: ((serviceKey: string, registrationKeys: readonly string[]) => void)[] = [];

  const findService = (serviceKey: string) => findIn(services, serviceKey);

  function notify(serviceKey: string): void {
    const keys = imported.registrationKeys(serviceKey);
    const service = findService(serviceKey);
    if (keys.length === 0 && (service === undefined || !mentionsRegistration(service))) return;
    for (const listener of listeners) listener(serviceKey, keys);
  }

  function onSlice(change: StoreChange<EndpointSlice>): void {
    const serviceKey = serviceOf(change.object);
    if (change.type === 'resync' || serviceKey === undefined) return;
    const nowMs = clock.monotonicMs();
    const wasReady = readiness.isReady(serviceKey);
    const slice = { serviceKey, name: change.object.metadata.name };
    if (change.type === 'deleted') readiness.sliceGone(slice, nowMs);
    else readiness.sliceSeen(slice, hasReadyEndpoint(change.object), nowMs);
    // All Services of the cluster pass here; how long they are unready counts for registered ones.
    if (imported.registrationKeys(serviceKey).length === 0) readiness.forget(serviceKey);
    if (readiness.isReady(serviceKey) !== wasReady) notify(serviceKey);
  }

  function onRegistration({ type, object }: StoreChange<ServiceRegistration>): void {
    const serviceKey = importedFrom(object);
    if (serviceKey === undefined) return;
    if (type === 'deleted') {
      imported.remove(serviceKey, objectKey(object));
      readiness.forget(serviceKey);
    } else {
      imported.add(serviceKey, objectKey(object));
      readiness.unreadySinceMs(serviceKey, clock.monotonicMs());
    }
    notify(serviceKey);
  }

  for (const informer of services) informer.onChange(({ object }) => notify(objectKey(object)));
  for (const informer of endpointSlices) informer.onChange(onSlice);
  registrations.onChange(onRegistration);

  function deadlineMs(serviceKey: string): number | undefined {
    const unreadySinceMs = readiness.unreadySinceMs(serviceKey, clock.monotonicMs());
    const connectedSinceMs = connectivity.sinceMs();
    if (unreadySinceMs === undefined || connectedSinceMs === undefined) return undefined;
    return Math.max(unreadySinceMs + ttlMs, graceEndMs(connectedSinceMs, ttlMs));
  }

  return {
    observe(serviceKey) {
      const service = findService(serviceKey);
      const desired = service === undefined ? ({ wanted: 'nothing' } as const) : desiredRegistration(service);
      const keys = imported.registrationKeys(serviceKey);
      return {
        serviceKey,
        service,
        desired,
        ready: readiness.isReady(serviceKey),
        imported: keys.flatMap((key) => registrations.store.get(key) ?? []),
        holder:
          desired.wanted === 'registration'
            ? holderAmong(byServiceName.get(desired.spec.serviceName), serviceKey)
            : undefined,
        namespace: deps.namespace,
      };
    },
    *serviceKeys() {
      yield* imported.serviceKeys();
      for (const { store } of services) {
        for (const service of store.values()) if (mentionsRegistration(service)) yield objectKey(service);
      }
    },
    onChange: (listener) => void listeners.push(listener),
    liveness(registration) {
      const serviceKey = importedFrom(registration);
      return { by: 'endpoints', ttlMs, deadlineMs: serviceKey === undefined ? undefined : deadlineMs(serviceKey) };
    },
    keeps(registration) {
      const service = findService(importedFrom(registration) ?? '');
      return service !== undefined && isAnnotated(service);
    },
  };
}

/** Of several instances one that is another's: a name belongs to who has it. */
function holderAmong(instances: readonly ServiceRegistration[], serviceKey: string): ServiceRegistration | undefined {
  return instances.find((each) => importedFrom(each) !== serviceKey) ?? instances[0];
}

function findIn(services: readonly Informer<Service>[], serviceKey: string): Service | undefined {
  for (const { store } of services) {
    const service = store.get(serviceKey);
    if (service !== undefined) return service;
  }
  return undefined;
}

/** Keys of the registrations by the Service that they were made from. */
function createImportIndex() {
  const keysByService = new Map<string, Set<string>>();
  return {
    add(serviceKey: string, registrationKey: string): void {
      const keys = keysByService.get(serviceKey) ?? new Set();
      keysByService.set(serviceKey, keys.add(registrationKey));
    },
    remove(serviceKey: string, registrationKey: string): void {
      const keys = keysByService.get(serviceKey);
      if (keys?.delete(registrationKey) === true && keys.size === 0) keysByService.delete(serviceKey);
    },
    registrationKeys: (serviceKey: string): readonly string[] => [...(keysByService.get(serviceKey) ?? [])],
    serviceKeys: (): Iterable<string> => keysByService.keys(),
  };
}

function serviceOf({ metadata }: EndpointSlice): string | undefined {
  const name = metadata.labels?.[SERVICE_LABEL];
  return name === undefined ? undefined : `${metadata.namespace ?? 'default'}/${name}`;
}
