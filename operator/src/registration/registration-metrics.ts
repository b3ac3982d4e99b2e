import type { Registry } from 'prom-client';
import { instruments } from '../runtime/instruments.ts';
import type { Census } from './observe.ts';

const LATENESS_SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60];

export type RegistrationMetrics = ReturnType<typeof createRegistrationMetrics>;

/**
 * Metrics of the registration controller.
 *
 * @param census counted when the metrics are scraped.
 */
export function createRegistrationMetrics(registry: Registry, census: () => Census) {
  const { counter, gauge, histogram } = instruments(registry);
  const phases = instruments(registry, 'phase');
  const known = 'Registrations by phase; Unknown: no operator has observed them yet.';
  void phases.gauge('rollcall_registrations', known, (registrations) => {
    for (const [phase, count] of Object.entries(census().phases)) registrations.set({ phase }, count);
  });
  const byHealth = 'Registrations that are not Expired, by health: of reports and checks.';
  void instruments(registry, 'health').gauge('rollcall_registrations_by_health', byHealth, (registrations) => {
    for (const [health, count] of Object.entries(census().health)) registrations.set({ health }, count);
  });
  const changed = 'Changes of the health of registrations.';
  const healthChanges = instruments(registry, 'to').counter('rollcall_health_changes_total', changed);
  for (const to of ['healthy', 'unhealthy']) healthChanges.inc({ to }, 0);
  const grace = '1 while a start or a lost connection gives registrations more time than their TTL.';
  void gauge('rollcall_grace_active', grace, (active) => active.set(census().inGrace > 0 ? 1 : 0));
  const expirations = counter('rollcall_expirations_total', 'Registrations that this operator expired.');
  const late = 'From the deadline of a registration until it was written as Expired.';
  const lateness = histogram('rollcall_expiry_lateness_seconds', late, LATENESS_SECONDS);
  const mass = 'Times that more than 100 and more than 20 % of all registrations expired within 10 s.';
  const massExpiries = counter('rollcall_mass_lapse_total', mass);
  return {
    expired(latenessMs: number): void {
      expirations.inc();
      lateness.observe(latenessMs / 1000);
    },
    healthChanged: (to: 'healthy' | 'unhealthy') => healthChanges.inc({ to }),
    massExpiry: () => massExpiries.inc(),
  };
}
