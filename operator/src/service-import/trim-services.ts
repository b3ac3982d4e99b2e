import { labels } from '@rollcall/crds/kinds.ts';
import { type EndpointSlice, SERVICE_LABEL, type Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import { pick, pickMetadata } from '../runtime/object-fields.ts';

/** The Service, as `namespace/name`, that an EndpointSlice belongs to. */
export function serviceKeyOf({ metadata }: EndpointSlice): string | undefined {
  const name = metadata.labels?.[SERVICE_LABEL];
  return name === undefined ? undefined : `${metadata.namespace ?? 'default'}/${name}`;
}

/** An endpoint that does not say counts as ready, as the EndpointSlice API asks of its readers. */
export function hasReadyEndpoint({ endpoints }: EndpointSlice): boolean {
  return endpoints?.some(({ conditions }) => conditions?.ready !== false) === true;
}

/**
 * What is kept of a Service: annotations of Rollcall and ports. Most Services of a cluster have no
 * annotation of Rollcall.
 */
export function trimService({ apiVersion, kind, metadata, spec }: Service): Service {
  const own = ownAnnotations(metadata);
  const known: Service = { apiVersion, kind, metadata: { ...pickMetadata(metadata), ...own } };
  return own.annotations === undefined ? known : { ...known, spec: pick(spec, 'ports', 'ipFamilies', 'type') };
}

/**
 * What is kept of a Service whose pods may be delivered to: all that says where its traffic goes.
 */
export function trimDeliverableService(service: Service): Service {
  const { apiVersion, kind, metadata } = service;
  const own = { ...ownAnnotations(metadata), labels: pick(metadata.labels, labels.job) };
  return {
    apiVersion,
    kind,
    metadata: { ...pickMetadata(metadata, 'managedFields'), ...own },
    ...pick(service, 'spec'),
  };
}

function ownAnnotations({ annotations }: Service['metadata']): { readonly annotations?: Record<string, string> } {
  const own = Object.entries(annotations ?? {}).filter(([name]) => name.startsWith('rollcall.dev/'));
  return own.length === 0 ? {} : { annotations: Object.fromEntries(own) };
}

/** What is kept of an EndpointSlice: whose it is and whether any endpoint is ready. */
export function trimEndpointSlice(slice: EndpointSlice): EndpointSlice {
  return { ...trimSlice(slice), endpoints: hasReadyEndpoint(slice) ? [{ addresses: [] }] : [] };
}

/** What is kept of an EndpointSlice whose endpoints are registered each by itself. */
export function trimWantedEndpointSlice(slice: EndpointSlice): EndpointSlice {
  return {
    ...trimSlice(slice),
    ports: slice.ports ?? [],
    endpoints: (slice.endpoints ?? []).map((endpoint) => ({
      ...pick(endpoint, 'zone'),
      addresses: endpoint.addresses,
      conditions: pick(endpoint.conditions, 'ready', 'terminating'),
      targetRef: pick(endpoint.targetRef, 'kind', 'name'),
    })),
  };
}

/** Whether it was kept without its endpoints. */
export function lacksEndpoints({ ports }: EndpointSlice): boolean {
  return ports === undefined;
}

function trimSlice({ apiVersion, kind, metadata, addressType }: EndpointSlice): EndpointSlice {
  return {
    apiVersion,
    kind,
    addressType,
    metadata: { ...pickMetadata(metadata), labels: pick(metadata.labels, SERVICE_LABEL) },
  };
}
