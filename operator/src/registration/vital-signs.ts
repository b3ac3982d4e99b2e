import { heartbeatOf } from '@rollcall/crds/heartbeat-lease.ts';
import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { Lease } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import { objectKey, type Change as StoreChange } from '@rollcall/platform/kube/store.ts';
import { createDeadlines, type Deadlines } from './deadlines.ts';
import { createRetention, type Retention } from './retention.ts';

export interface VitalSignsDeps {
  readonly registrations: Informer<ServiceRegistration>;
  readonly leases: Informer<Lease>;
  readonly clock: Clock;
  /** Called with a key whose time may be up earlier than it was. */
  readonly onEarlier: (key: string) => void;
}

/** What both informers have received of registrations, by when this process saw it. */
export interface VitalSigns {
  readonly deadlines: Pick<Deadlines, 'deadlineMs'>;
  readonly retention: Pick<Retention, 'sinceMs' | 'size'>;
  /** RFC 3339 time of the last heartbeat on a Lease that is gone. */
  lastHeartbeatAt(key: string): string | undefined;
}

/** Listens to both informers, which must not have been started yet. */
export function watchVitalSigns({ registrations, leases, clock, onEarlier }: VitalSignsDeps): VitalSigns {
  const deadlines = createDeadlines();
  const retention = createRetention();
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
      retention.forget(uid);
      lastHeartbeats.delete(key);
      return;
    }
    const ttlMs = heartbeatTtlMs(object);
    if (ttlMs === undefined) deadlines.registrationGone(key);
    else deadlines.registrationSeen(key, { uid, ttlMs }, nowMs);
    if (object.status?.phase === 'Expired') retention.expiredSeen(uid, expiredForMs(object), nowMs);
  }

  function expiredForMs({ status }: ServiceRegistration): number {
    const watched = registrations.connectivity() === 'connected';
    return watched || status?.phaseSince === undefined ? 0 : clock.now().getTime() - Date.parse(status.phaseSince);
  }

  registrations.onChange(onRegistration);
  leases.onChange(onLease);
  return { deadlines, retention, lastHeartbeatAt: (key) => lastHeartbeats.get(key) };
}

/** How long a registration lives without heartbeats, in ms; undefined when it needs none. */
export function heartbeatTtlMs({ spec }: ServiceRegistration): number | undefined {
  if (spec.source === 'KubernetesService' || spec.ttlSeconds === undefined) return undefined;
  return spec.ttlSeconds * 1000;
}
