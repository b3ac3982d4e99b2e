import { annotations } from './kinds.ts';
import type { ObjectMeta } from './object-meta.ts';

/** What a Lease says of the heartbeats of a registration. */
export interface LeasedHeartbeat {
  /** uid of the registration that owns the Lease; undefined when it has no owner. */
  readonly ownerUid: string | undefined;
  /**
   * When the heartbeat came, by the clock of who wrote it; RFC 3339. Undefined before the first.
   */
  readonly renewTime: string | undefined;
  /** By how much the heartbeat was older than the write that carries it; never negative. */
  readonly ageMs: number;
  /** Undefined when the Lease does not say. */
  readonly ttlSeconds: number | undefined;
}

/** Reads the Lease of a registration. An age that is no positive number counts as none. */
export function heartbeatOf(lease: {
  readonly metadata: ObjectMeta;
  readonly spec?: { readonly renewTime?: string; readonly leaseDurationSeconds?: number };
}): LeasedHeartbeat {
  const { metadata, spec } = lease;
  const ageMs = Number(metadata.annotations?.[annotations.heartbeatAgeMs] ?? 0);
  return {
    ownerUid: metadata.ownerReferences?.find((owner) => owner.kind === 'ServiceRegistration')?.uid,
    renewTime: spec?.renewTime,
    ageMs: Number.isFinite(ageMs) && ageMs > 0 ? ageMs : 0,
    ttlSeconds: spec?.leaseDurationSeconds,
  };
}
