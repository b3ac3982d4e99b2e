import { annotations } from '@rollcall/crds/kinds.ts';
import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Lease } from '@rollcall/platform/kube/builtin-kinds.ts';
import { versionOf } from '@rollcall/platform/kube/store.ts';
import type { HeartbeatWrite, Registration } from '../domain/ports.ts';

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

/** The heartbeat that a Lease holds, and the life of the registration that it is of. */
export interface LeasedHeartbeat extends HeartbeatWrite {
  readonly id: string;
  readonly ttlSeconds: number | undefined;
}

/** Undefined when the Lease is not that of a registration. */
export function heartbeatOf(lease: Lease): LeasedHeartbeat | undefined {
  const id = lease.metadata.ownerReferences?.[0]?.uid;
  const renewTime = lease.spec?.renewTime;
  if (id === undefined || renewTime === undefined) return undefined;
  const ageMs = Number(lease.metadata.annotations?.[annotations.heartbeatAgeMs] ?? 0);
  return {
    id,
    at: new Date(renewTime),
    ageMs: Number.isFinite(ageMs) && ageMs > 0 ? ageMs : 0,
    ttlSeconds: lease.spec?.leaseDurationSeconds,
  };
}

/** RFC 3339 with microseconds, as `MicroTime` fields want it. */
export function microTime(at: Date): string {
  return at.toISOString().replace('Z', '000Z');
}
