import { labels as ownLabels } from '@rollcall/crds/kinds.ts';
import type { EndpointSlice, Service } from '@rollcall/platform/kube/builtin-kinds.ts';

/** On an EndpointSlice: the name of its Service. */
export const SERVICE_LABEL = 'kubernetes.io/service-name';

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
  return {
    apiVersion,
    kind,
    metadata: { ...identity(metadata), ...own },
    ...(own.annotations === undefined || spec?.ports === undefined ? {} : { spec: { ports: spec.ports } }),
  };
}

/**
 * What is kept of a Service whose pods may be delivered to: all that says where its traffic goes.
 */
export function trimDeliverableService({ apiVersion, kind, metadata, spec }: Service): Service {
  const job = metadata.labels?.[ownLabels.job];
  const { managedFields } = metadata;
  return {
    apiVersion,
    kind,
    metadata: {
      ...identity(metadata),
      ...ownAnnotations(metadata),
      ...(job === undefined ? {} : { labels: { [ownLabels.job]: job } }),
      ...(managedFields === undefined ? {} : { managedFields }),
    },
    ...(spec === undefined ? {} : { spec }),
  };
}

function ownAnnotations({ annotations }: Service['metadata']): { readonly annotations?: Record<string, string> } {
  const own = Object.entries(annotations ?? {}).filter(([name]) => name.startsWith('rollcall.dev/'));
  return own.length === 0 ? {} : { annotations: Object.fromEntries(own) };
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
