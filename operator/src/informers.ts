import { labels, serviceRegistrationKind } from '@rollcall/crds/kinds.ts';
import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import {
  type EndpointSlice,
  endpointSliceKind,
  type Lease,
  leaseKind,
  type Service,
  serviceKind,
} from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { createInformer, type Informer } from '@rollcall/platform/kube/informer.ts';
import type { KubeObject } from '@rollcall/platform/kube/resource-client.ts';
import type { Logger } from '@rollcall/platform/log.ts';
import { trimLease, trimRegistration } from './registration/trim.ts';
import { trimEndpointSlice, trimService } from './service-import/trim.ts';

/** Every object is looked at again this often, in case a change was acted on wrongly or not at all. */
const RESYNC_MS = 600_000;

/** Local copies of all that the operator decides on. */
export interface Informers {
  readonly registrations: Informer<ServiceRegistration>;
  readonly leases: Informer<Lease>;
  /** None where Services are not imported. */
  readonly services: readonly Informer<Service>[];
  readonly endpointSlices: readonly Informer<EndpointSlice>[];
  /** Resolves when registrations and Leases are complete; what Services need may take longer, or never come for want of rights. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Resolves when Services and EndpointSlices are complete. */
  readonly importsSynced: Promise<void>;
  /** What is not complete yet; undefined when everything is. */
  unsynced(): string | undefined;
}

export interface InformersDeps {
  readonly connection: KubeConnection;
  readonly namespace: string;
  /** No namespaces: all of them. */
  readonly importing: { readonly namespaces: readonly string[] } | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createInformers({ connection, namespace, importing, clock, log }: InformersDeps): Informers {
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

  function perNamespace<T extends KubeObject>(kind: ResourceKind<T>, transform: (object: T) => T): Informer<T>[] {
    if (importing === undefined) return [];
    const scopes = importing.namespaces.length === 0 ? [{}] : importing.namespaces.map((name) => ({ namespace: name }));
    return scopes.map((scope) => createInformer({ ...common, kind, ...scope, transform, resyncMs: RESYNC_MS }));
  }
  const services = perNamespace(serviceKind, trimService);
  const endpointSlices = perNamespace(endpointSliceKind, trimEndpointSlice);

  const everything = { registrations: [registrations], leases: [leases], services, endpointSlices };
  const all = Object.values(everything).flat();
  return {
    registrations,
    leases,
    services,
    endpointSlices,
    async start() {
      for (const informer of all) informer.start();
      await Promise.all([registrations.synced, leases.synced]);
    },
    stop: async () => void (await Promise.all(all.map((informer) => informer.stop()))),
    importsSynced: Promise.all([...services, ...endpointSlices].map(({ synced }) => synced)).then(() => undefined),
    unsynced() {
      const missing = Object.entries(everything).filter(([, list]) => list.some((informer) => !informer.hasSynced()));
      return missing.length === 0 ? undefined : `no complete copy yet of: ${missing.map(([name]) => name).join(', ')}`;
    },
  };
}
