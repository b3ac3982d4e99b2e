import { labels, serviceRegistrationKind } from '@rollcall/crds/kinds.ts';
import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import {
  type EndpointSlice,
  endpointSliceKind,
  leaseKind,
  type Service,
  serviceKind,
} from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { createInformer, type Informer } from '@rollcall/platform/kube/informer.ts';
import type { KubeObject } from '@rollcall/platform/kube/resource-client.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { createDeliveryInformers } from './delivery/observe/informers.ts';
import { trimMirrorService, trimMirrorSlice } from './dns/trim.ts';
import { trimLease, trimRegistration } from './registration/trim-registrations.ts';
import { FIELD_MANAGER } from './runtime/field-manager.ts';
import { wantsEndpoints } from './service-import/desired.ts';
import {
  serviceKeyOf,
  trimDeliverableService,
  trimEndpointSlice,
  trimService,
  trimWantedEndpointSlice,
} from './service-import/trim-services.ts';

/**
 * Every object is observed again this often, in case a change was acted on wrongly or not at all.
 */
const RESYNC_MS = 600_000;

/** Local copies of all that the operator decides on. */
export type Informers = ReturnType<typeof createInformers>;

/** No namespaces: all of them. */
interface Scope {
  readonly namespaces: readonly string[];
}

export interface InformersDeps {
  readonly connection: KubeConnection;
  readonly namespace: string;
  readonly importing: Scope | undefined;
  readonly delivering: Scope;
  /** Where registered names become Services; undefined: nowhere. */
  readonly mirroring: string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createInformers(deps: InformersDeps) {
  const { connection, namespace, importing, delivering, clock, log } = deps;
  const common = { connection, clock, log };
  const registrations = createInformer({
    ...common,
    kind: serviceRegistrationKind,
    namespace,
    transform: trimRegistration,
    resyncMs: RESYNC_MS,
  });
  const labelSelector = `${labels.heartbeat}=true`;
  const leases = createInformer({ ...common, kind: leaseKind, namespace, labelSelector, transform: trimLease });
  const services = createServiceInformers(deps);
  const slice = {
    ...common,
    kind: endpointSliceKind,
    transform: (object: EndpointSlice) =>
      isWanted(object, services.importing) ? trimWantedEndpointSlice(object) : trimEndpointSlice(object),
    resyncMs: RESYNC_MS,
  };
  const endpointSlices = scopesOf(importing).map((scope) => createInformer({ ...slice, ...scope }));
  const delivery = createDeliveryInformers({
    connection,
    namespace,
    namespaces: delivering.namespaces,
    services: services.delivering,
    clock,
    log,
  });

  const dns = createDnsInformers(deps);
  const { jobs, policies, ...perNamespace } = delivery;
  const everything = {
    registrations: [registrations],
    leases: [leases],
    services: [...new Set([...services.importing, ...services.delivering])],
    endpointSlices,
    jobs: [jobs],
    policies: [policies],
    deployments: [...perNamespace.deployments, ...perNamespace.extraDeployments],
    replicaSets: perNamespace.replicaSets,
    pods: perNamespace.pods,
    dns: dns === undefined ? [] : [dns.services, dns.slices],
  } satisfies Readonly<Record<string, readonly Running[]>>;
  const all: readonly Running[] = Object.values(everything).flat();
  return {
    registrations,
    leases,
    /** None where Services are not imported. */
    services: services.importing,
    endpointSlices,
    delivery,
    /** Undefined where registered names do not become Services. */
    dns,
    /**
     * Resolves when registrations and Leases are complete; what the others need may come later, or
     * never without rights.
     */
    async start(): Promise<void> {
      for (const informer of all) informer.start();
      await Promise.all([registrations.synced, leases.synced]);
    },
    stop: async (): Promise<void> => void (await Promise.all(all.map((informer) => informer.stop()))),
    /** Resolves when Services and EndpointSlices are complete. */
    importsSynced: allSynced([...services.importing, ...endpointSlices]),
    /** Resolves when registrations, and what there is of them in DNS, are complete. */
    dnsSynced: allSynced([registrations, ...everything.dns]),
    /** Resolves when all that deliveries rest on is complete. */
    deliverySynced: allSynced([jobs, policies, ...Object.values(perNamespace).flat()]),
    /** What is not complete yet; undefined when everything is. */
    unsynced(): string | undefined {
      const missing = Object.entries<readonly Running[]>(everything).filter(([, list]) =>
        list.some((informer) => !informer.hasSynced()),
      );
      return missing.length === 0 ? undefined : `no complete copy yet of: ${missing.map(([name]) => name).join(', ')}`;
    },
  };
}

/** Whether the slice's endpoints are registered each by itself, as far as is known yet. */
function isWanted(slice: EndpointSlice, services: readonly Informer<Service>[]): boolean {
  const serviceKey = serviceKeyOf(slice) ?? '';
  return services.some(({ store }) => {
    const service = store.get(serviceKey);
    return service !== undefined && wantsEndpoints(service);
  });
}

/** An informer of any kind. */
type Running = Pick<Informer<KubeObject>, 'start' | 'stop' | 'synced' | 'hasSynced'>;

async function allSynced(informers: readonly Running[]): Promise<void> {
  await Promise.all(informers.map(({ synced }) => synced));
}

function scopesOf(scope: Scope | undefined): { readonly namespace?: string }[] {
  if (scope === undefined) return [];
  return scope.namespaces.length === 0 ? [{}] : scope.namespaces.map((namespace) => ({ namespace }));
}

/** Copies of their own: what others keep of Services and EndpointSlices is too little, or of other namespaces. */
function createDnsInformers({ connection, clock, log, mirroring: namespace }: InformersDeps) {
  if (namespace === undefined) return undefined;
  const common = { connection, clock, log, namespace, resyncMs: RESYNC_MS };
  return {
    services: createInformer({ ...common, kind: serviceKind, transform: trimMirrorService }),
    slices: createInformer({ ...common, kind: endpointSliceKind, transform: trimMirrorSlice }),
  };
}

interface ServiceInformers {
  readonly importing: readonly Informer<Service>[];
  readonly delivering: readonly Informer<Service>[];
}

/**
 * Where import and delivery read the same namespace they share a copy; one that is too wide for the
 * import is no use to it.
 */
function createServiceInformers({ connection, clock, log, importing, delivering }: InformersDeps): ServiceInformers {
  const isDelivered = (namespace: string | undefined) =>
    delivering.namespaces.length === 0 || delivering.namespaces.includes(namespace ?? '');
  const transform = (service: Service): Service =>
    isDelivered(service.metadata.namespace) ? trimDeliverableService(service) : trimService(service);
  const kind: ResourceKind<Service> = serviceKind;
  const create = (scope: { readonly namespace?: string }) =>
    createInformer({
      connection,
      clock,
      log,
      kind,
      transform,
      ownFieldsOf: FIELD_MANAGER,
      resyncMs: RESYNC_MS,
      ...scope,
    });

  const imported = scopesOf(importing).map((scope) => ({ scope, informer: create(scope) }));
  const shared = (namespace: string | undefined) =>
    imported.find(({ scope }) => scope.namespace === undefined || scope.namespace === namespace)?.informer;
  const delivered = scopesOf(delivering).map((scope) => shared(scope.namespace) ?? create(scope));
  return { importing: imported.map(({ informer }) => informer), delivering: [...new Set(delivered)] };
}
