import { heartbeatOf } from '@rollcall/crds/heartbeat-lease.ts';
import { labels } from '@rollcall/crds/kinds.ts';
import type { HealthCheckStatus, ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { Lease } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import type { ResourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { objectKey } from '@rollcall/platform/kube/store.ts';
import { type Connectivity, graceEndMs } from '../runtime/connectivity.ts';
import { isUnhealthy } from './health.ts';
import type { Liveness, RegistrationSnapshot } from './plan.ts';
import { heartbeatTtlMs, watchVitalSigns } from './vital-signs.ts';

/** What keeps registrations made from Kubernetes Services alive; see `service-import/`. */
export interface EndpointLiveness {
  liveness(registration: ServiceRegistration): Extract<Liveness, { by: 'endpoints' }>;
  /** Whether an Expired registration has to stay, because its Service is still to be registered. */
  keeps(registration: ServiceRegistration): boolean;
}

export interface ObserverDeps {
  readonly registrations: Informer<ServiceRegistration>;
  readonly leases: Informer<Lease>;
  readonly leaseClient: Pick<ResourceClient<Lease>, 'find'>;
  /** Over both informers. */
  readonly connectivity: Connectivity;
  /** Undefined where Services are not imported: what was imported earlier then stays as it is. */
  readonly endpoints: EndpointLiveness | undefined;
  readonly checks: { statusOf(registration: ServiceRegistration): HealthCheckStatus | undefined };
  readonly clock: Clock;
  readonly retentionMs: number;
  /**
   * Called when a deadline is earlier than it was; later ones are found when the earlier one comes.
   */
  readonly onEarlierDeadline: (key: string, deadlineMs: number) => void;
}

/** Follows both informers from before they start, whether this process leads or not. */
export type RegistrationObserver = ReturnType<typeof createRegistrationObserver>;

export interface Census {
  /** Unknown: no operator has observed them yet. */
  readonly phases: Readonly<Record<'Registered' | 'Expired' | 'Unknown', number>>;
  /** Of those that are not Expired. */
  readonly health: Readonly<Record<'healthy' | 'unhealthy', number>>;
  /** How many a blind spot gives more time than their TTL. */
  readonly inGrace: number;
}

export function createRegistrationObserver(deps: ObserverDeps) {
  const { registrations, leases, connectivity, clock } = deps;
  const signs = watchVitalSigns({ registrations, leases, clock, onEarlier: tellEarlier });

  function tellEarlier(key: string): void {
    const deadlineMs = signs.deadlines.deadlineMs(key, connectivity.sinceMs());
    if (deadlineMs !== undefined) deps.onEarlierDeadline(key, deadlineMs);
  }

  function ownLease(registration: ServiceRegistration): Lease | undefined {
    const lease = leases.store.get(objectKey(registration));
    const ownerUid = lease === undefined ? undefined : heartbeatOf(lease).ownerUid;
    return ownerUid === undefined || ownerUid === registration.metadata.uid ? lease : undefined;
  }

  function livenessOf(registration: ServiceRegistration): Liveness {
    if (registration.spec.source === 'KubernetesService') {
      return deps.endpoints?.liveness(registration) ?? { by: 'itself' };
    }
    const ttlMs = heartbeatTtlMs(registration);
    if (ttlMs === undefined) return { by: 'itself' };
    const key = objectKey(registration);
    const lease = ownLease(registration);
    const leaseTtlSeconds = lease?.spec?.leaseDurationSeconds;
    return {
      by: 'heartbeats',
      ttlMs: leaseTtlSeconds === undefined ? ttlMs : leaseTtlSeconds * 1000,
      deadlineMs: signs.deadlines.deadlineMs(key, connectivity.sinceMs()),
      lease,
      lastHeartbeatAt: lease?.spec?.renewTime ?? signs.lastHeartbeatAt(key),
    };
  }

  /**
   * A watch may be behind, and without a Lease there is nothing to delete that would show it: so
   * ask before expiring.
   */
  async function confirmLeaseless(registration: ServiceRegistration, liveness: Liveness): Promise<Liveness> {
    const { deadlineMs } = liveness.by === 'heartbeats' && liveness.lease === undefined ? liveness : {};
    if (deadlineMs === undefined || deadlineMs > clock.monotonicMs()) return liveness;
    const lease = await deps.leaseClient.find(registration.metadata.name);
    if (lease?.metadata.labels?.[labels.heartbeat] !== 'true') return liveness;
    leases.recordWrite(lease);
    return livenessOf(registration);
  }

  function deleteAtMs(registration: ServiceRegistration): number | undefined {
    const sinceMs = signs.expiredSinceMs(registration.metadata.uid ?? '');
    if (sinceMs === undefined || deps.endpoints?.keeps(registration) === true) return undefined;
    return sinceMs + deps.retentionMs;
  }

  return {
    /** @throws as the API server's client, when a missing Lease has to be confirmed. */
    async observe(key: string): Promise<RegistrationSnapshot | undefined> {
      const registration = registrations.store.get(key);
      if (registration === undefined) return undefined;
      const known = livenessOf(registration);
      const expired = registration.status?.phase === 'Expired';
      const liveness = expired ? known : await confirmLeaseless(registration, known);
      const [nowMs, now] = [clock.monotonicMs(), clock.now()];
      const check = deps.checks.statusOf(registration);
      return { registration, liveness, check, deleteAtMs: deleteAtMs(registration), nowMs, now };
    },
    /** How many registrations are not Expired. */
    alive: (): number => registrations.store.size - signs.expiredCount(),
    census(): Census {
      const phases = { Registered: 0, Expired: 0, Unknown: 0 };
      const health = { healthy: 0, unhealthy: 0 };
      let inGrace = 0;
      const [connectedSinceMs, nowMs] = [connectivity.sinceMs(), clock.monotonicMs()];
      const isGrace = (ttlMs: number): boolean =>
        connectedSinceMs === undefined || graceEndMs(connectedSinceMs, ttlMs) > nowMs;
      for (const registration of registrations.store.values()) {
        const phase = registration.status?.phase ?? 'Unknown';
        phases[phase] += 1;
        if (phase !== 'Expired') health[isUnhealthy(registration.status?.conditions) ? 'unhealthy' : 'healthy'] += 1;
        const ttlMs = heartbeatTtlMs(registration);
        if (phase !== 'Expired' && ttlMs !== undefined && isGrace(ttlMs)) inGrace += 1;
      }
      return { phases, health, inGrace };
    },
  };
}
