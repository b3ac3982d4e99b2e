import type { EndpointSlice, Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import { pick, pickMetadata } from '../runtime/object-fields.ts';

/** What is kept of a Service: whose it is, and what it says to DNS. */
export function trimMirrorService({ apiVersion, kind, metadata, spec }: Service): Service {
  return {
    apiVersion,
    kind,
    metadata: pickMetadata(metadata, 'labels'),
    spec: pick(spec, 'type', 'clusterIP', 'externalName', 'ports'),
  };
}

/** What is kept of an EndpointSlice: all but annotations and managers. */
export function trimMirrorSlice({ apiVersion, kind, metadata, ...rest }: EndpointSlice): EndpointSlice {
  return { apiVersion, kind, metadata: pickMetadata(metadata, 'labels', 'ownerReferences'), ...rest };
}
