import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Census } from './observe.ts';

/** Metrics of the registration controller. */
export interface RegistrationMetrics {
  expired(latenessMs: number): void;
  massLapse(): void;
}

/** @param census counted when the metrics are scraped. */
export function createRegistrationMetrics(registry: Registry, census: () => Census): RegistrationMetrics {
  const registers = [registry];
  void new Gauge({
    name: 'rollcall_registrations',
    help: 'Registrations by phase; Unknown: no operator has observed them yet.',
    labelNames: ['phase'],
    registers,
    collect() {
      for (const [phase, count] of Object.entries(census().phases)) this.set({ phase }, count);
    },
  });
  void new Gauge({
    name: 'rollcall_grace_active',
    help: '1 while a start or a lost connection gives registrations more time than their TTL.',
    registers,
    collect() {
      this.set(census().inGrace > 0 ? 1 : 0);
    },
  });
  const expirations = new Counter({
    name: 'rollcall_expirations_total',
    help: 'Registrations that this operator expired.',
    registers,
  });
  const lateness = new Histogram({
    name: 'rollcall_expiry_lateness_seconds',
    help: 'From the deadline of a registration until it was written as Expired.',
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60],
    registers,
  });
  const massLapses = new Counter({
    name: 'rollcall_mass_lapse_total',
    help: 'Times that more than 100 and more than 20 % of all registrations lapsed within 10 s.',
    registers,
  });
  return {
    expired(latenessMs) {
      expirations.inc();
      lateness.observe(latenessMs / 1000);
    },
    massLapse: () => massLapses.inc(),
  };
}
