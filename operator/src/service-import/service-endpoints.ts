import { type EndpointSlice, SERVICE_LABEL, type Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import { indexBy } from '../runtime/object-index.ts';
import { wantsEndpoints } from './desired.ts';
import { type Endpoints, endpointsOf } from './endpoints.ts';
import { hasReadyEndpoint, lacksEndpoints, serviceKeyOf } from './trim-services.ts';

export interface ServiceEndpointsDeps {
  /** One per namespace that Services are imported from, or a single one of all namespaces. */
  readonly endpointSlices: readonly Informer<EndpointSlice>[];
  /** From the API server itself. */
  readonly listSlices: (namespace: string, labelSelector: string) => Promise<readonly EndpointSlice[]>;
  /** By `namespace/name`. */
  readonly findService: (serviceKey: string) => Service | undefined;
}

/** What EndpointSlices say of Services. Must be made before the informers start. */
export type ServiceEndpoints = ReturnType<typeof createServiceEndpoints>;

export function createServiceEndpoints({ endpointSlices, listSlices, findService }: ServiceEndpointsDeps) {
  const slices = indexBy(endpointSlices, serviceKeyOf);
  const cache = new Map<string, Endpoints>();

  function areWanted(serviceKey: string): boolean {
    const service = findService(serviceKey);
    return service !== undefined && wantsEndpoints(service);
  }

  return {
    /** Whether the Service asks for each of them. */
    areWanted,
    hasReady: (serviceKey: string): boolean => slices.get(serviceKey).some(hasReadyEndpoint),
    /** Undefined while they are not known, and where the Service does not ask for them. */
    of(serviceKey: string): Endpoints | undefined {
      const known = cache.get(serviceKey);
      if (known !== undefined) return known;
      const service = findService(serviceKey);
      const own = slices.get(serviceKey);
      if (service === undefined || !wantsEndpoints(service) || own.some(lacksEndpoints)) return undefined;
      const found = endpointsOf(service, own);
      cache.set(serviceKey, found);
      return found;
    },
    /** To be called when the Service or a slice of it has changed. */
    changed: (serviceKey: string): void => void cache.delete(serviceKey),
    /**
     * Reads the endpoints that were not kept because the Service did not ask for them when its slices
     * came.
     *
     * @throws as the API server's client.
     */
    async complete(serviceKey: string): Promise<void> {
      if (!areWanted(serviceKey) || !slices.get(serviceKey).some(lacksEndpoints)) return;
      const [namespace = '', name = ''] = serviceKey.split('/');
      const informer = endpointSlices.find((each) => each.namespace === undefined || each.namespace === namespace);
      const read = await listSlices(namespace, `${SERVICE_LABEL}=${name}`);
      for (const slice of read) informer?.recordRead(slice);
    },
  };
}
