import { annotations } from '@rollcall/crds/kinds.ts';
import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import { versionOf } from '@rollcall/platform/kube/store.ts';
import type { Registration } from '../domain/registration.ts';

/** The domain's view of a ServiceRegistration that the API server stored. */
export function toRegistration(object: ServiceRegistration): Registration {
  const { metadata, spec, status } = object;
  return {
    serviceName: spec.serviceName,
    url: spec.url,
    id: metadata.uid ?? '',
    capabilities: spec.capabilities,
    source: spec.source,
    ttlSeconds: spec.ttlSeconds,
    registeredAt: new Date(status?.registeredAt ?? metadata.creationTimestamp ?? 0),
    phase: status?.phase ?? 'Registered',
    currentVersion: status?.currentVersion,
    owner: metadata.annotations?.[annotations.owner],
    version: versionOf(object),
  };
}
