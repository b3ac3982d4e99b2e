import type { EndpointSlice, Service } from '@rollcall/platform/kube/builtin-kinds.ts';

/** On an EndpointSlice: the name of its Service. */
export const SERVICE_LABEL = 'kubernetes.io/service-name';

/** An endpoint that does not say counts as ready, as the EndpointSlice API asks of its readers. */
export function hasReadyEndpoint({ endpoints }: EndpointSlice): boolean {
  return endpoints?.some(({ conditions }) => conditions?.ready !== false) === true;
}

/** What is kept of a Service: annotations of Rollcall and ports. Most Services of a cluster have no annotation of Rollcall. */
export function trimService({ apiVersion, kind, metadata, spec }: Service): Service {
  const own = Object.entries(metadata.annotations ?? {}).filter(([name]) => name.startsWith('rollcall.dev/'));
  return {
    apiVersion,
    kind,
    metadata: { ...identity(metadata), ...(own.length === 0 ? {} : { annotations: Object.fromEntries(own) }) },
    ...(own.length === 0 || spec?.ports === undefined ? {} : { spec: { ports: spec.ports } }),
  };
}

/** What is kept of an EndpointSlice: whose it is and whether any endpoint is ready. */
export function trimEndpointSlice(slice: EndpointSlice): EndpointSlice {
  const { apiVersion, kind, metadata, addressType } = slice;
  const name = metadata.labels?.[SERVICE_LABEL];
  return {
    apiVersion,
    kind,
    addressType,
    metadata: { ...identity(metadata), ...(name === undefined ? {} : { labels: { [SERVICE_LABEL]: name } }) },
    endpoints: hasReadyEndpoint(slice) ? [{ addresses: [] }] : [],
  };
}

function identity({ name, namespace, uid, resourceVersion, deletionTimestamp }: Service['metadata']) {
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
  };
}
