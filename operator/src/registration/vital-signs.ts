import { heartbeatOf } from '@rollcall/crds/heartbeat-lease.ts';
import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { Lease } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import { objectKey, type Change as StoreChange } from '@rollcall/platform/kube/store.ts';
import { createDeadlines } from './deadlines.ts';

export interface VitalSignsDeps {
  readonly registrations: Informer<ServiceRegistration>;
  readonly leases: Informer<Lease>;
  readonly clock: Clock;
  /** Called with a key whose time may be up earlier than it was. */
  readonly onEarlier: (key: string) => void;
}

/**
 * What both informers have received of registrations, by when this process saw it.
 *
 * Listens to both informers, which must not have been started yet.
 */
export function watchVitalSigns({ registrations, leases, clock, onEarlier }: VitalSignsDeps) {
  const deadlines = createDeadlines();
  /** By uid, monotonic. */
  const expiredSince = new Map<string, number>();
  const lastHeartbeats = new Map<string, string>();

  function onLease({ type, object }: StoreChange<Lease>): void {
    if (type === 'resync') return;
    const key = objectKey(object);
    const nowMs = clock.monotonicMs();
    if (type !== 'deleted') {
      const { ownerUid, ageMs, ttlSeconds } = heartbeatOf(object);
      const ttlMs = ttlSeconds === undefined ? undefined : ttlSeconds * 1000;
      if (deadlines.heartbeatSeen(key, { ownerUid, ageMs, ttlMs }, nowMs)) onEarlier(key);
      return;
    }
    deadlines.leaseGone(key, nowMs);
    const { renewTime } = object.spec ?? {};
    if (renewTime !== undefined && registrations.store.get(key) !== undefined) lastHeartbeats.set(key, renewTime);
  }

  function onRegistration({ type, object }: StoreChange<ServiceRegistration>): void {
    if (type === 'resync') return;
    const { uid = '' } = object.metadata;
    const key = objectKey(object);
    const nowMs = clock.monotonicMs();
    if (type === 'deleted') {
      deadlines.registrationGone(key);
      expiredSince.delete(uid);
      lastHeartbeats.delete(key);
      return;
    }
    const ttlMs = heartbeatTtlMs(object);
    if (ttlMs === undefined) deadlines.registrationGone(key);
    else deadlines.registrationSeen(key, { uid, ttlMs }, nowMs);
    const isNews = object.status?.phase === 'Expired' && !expiredSince.has(uid);
    if (isNews) expiredSince.set(uid, nowMs - Math.max(0, expiredForMs(object)));
  }

  /**
   * 0 when the change was watched. For what was Expired before this process started it is by the
   * wall clock, which from then on may step without effect.
   */
  function expiredForMs({ status }: ServiceRegistration): number {
    const watched = registrations.connectivity() === 'connected';
    return watched || status?.phaseSince === undefined ? 0 : clock.now().getTime() - Date.parse(status.phaseSince);
  }

  registrations.onChange(onRegistration);
  leases.onChange(onLease);
  return {
    deadlines,
    /** RFC 3339 time of the last heartbeat on a Lease that is gone. */
    lastHeartbeatAt: (key: string) => lastHeartbeats.get(key),
    /** Monotonic ms; undefined when it was never seen Expired. */
    expiredSinceMs: (uid: string) => expiredSince.get(uid),
    expiredCount: () => expiredSince.size,
  };
}

/** How long a registration lives without heartbeats, in ms; undefined when it needs none. */
export function heartbeatTtlMs({ spec }: ServiceRegistration): number | undefined {
  if (spec.source === 'KubernetesService' || spec.ttlSeconds === undefined) return undefined;
  return spec.ttlSeconds * 1000;
}
