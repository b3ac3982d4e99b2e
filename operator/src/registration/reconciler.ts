import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { Lease } from '@rollcall/platform/kube/builtin-kinds.ts';
import { objectKey, type Store } from '@rollcall/platform/kube/store.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import type { Reconciler } from '../runtime/controller.ts';
import type { EventRecorder } from '../runtime/events.ts';
import { createMassExpiry } from './mass-expiry.ts';
import type { RegistrationObserver } from './observe.ts';
import { findExpiry, findHealthChange, planRegistration, type RegistrationSnapshot } from './plan.ts';
import type { RegistrationMetrics } from './registration-metrics.ts';

export interface RegistrationReconcilerDeps {
  readonly store: Store<ServiceRegistration>;
  readonly observer: RegistrationObserver;
  readonly concurrency: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: RegistrationMetrics;
  readonly events: EventRecorder;
  /** Events about the registry as a whole are written on the Lease of the leading operator. */
  readonly leaderLease: () => Lease | undefined;
}

/** Keeps the status of registrations and expires them; see docs/internals.md, "Expire". */
export function registrationReconciler(deps: RegistrationReconcilerDeps): Reconciler<RegistrationSnapshot> {
  const { store, observer, clock, metrics } = deps;
  const massExpiry = createMassExpiry();

  function announceMassExpiry(count: number): void {
    const alive = observer.alive();
    metrics.massExpiry();
    deps.log.warn({ expired: count, alive }, 'very many registrations expired at once');
    const regarding = deps.leaderLease();
    if (regarding === undefined) return;
    const message = `${count} registrations expired within 10 s, ${alive} are left; more expire when their time is up`;
    deps.events.record({ regarding, type: 'Warning', reason: 'MassLapse', message });
  }

  function countHealth(snapshot: RegistrationSnapshot): void {
    const { deletionTimestamp } = snapshot.registration.metadata;
    if (deletionTimestamp !== undefined || snapshot.registration.status?.phase === 'Expired') return;
    const change = findHealthChange(snapshot);
    if (change !== undefined) metrics.healthChanged(change);
  }

  return {
    name: 'registration',
    concurrency: deps.concurrency,
    *keys() {
      for (const registration of store.values()) yield objectKey(registration);
    },
    observe: (key) => observer.observe(key),
    plan: planRegistration,
    onApplied(snapshot) {
      const expiry = findExpiry(snapshot);
      if (expiry === undefined) return countHealth(snapshot);
      const nowMs = clock.monotonicMs();
      metrics.expired(nowMs - expiry.deadlineMs);
      const count = massExpiry.expired(observer.alive(), nowMs);
      if (count !== undefined) announceMassExpiry(count);
    },
  };
}
