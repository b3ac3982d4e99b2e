import { Gauge, type Registry } from 'prom-client';
import { type Quota, type QuotaStore, quotaStates } from './domain/quotas.ts';

/** Shows what is used of quotas, of all replicas. Without the database nothing is known of it. */
export function measureQuotas(metrics: Registry, store: QuotaStore, quotas: ReadonlyMap<string, Quota>): void {
  const labelNames = ['provider', 'per'];
  const limits = new Gauge({
    name: 'rollcall_communication_quota_limit',
    help: 'How many messages a provider is given at most in an hour or a day.',
    labelNames,
    registers: [metrics],
  });
  for (const [provider, { perHour, perDay }] of quotas) {
    if (perHour !== undefined) limits.set({ provider, per: 'hour' }, perHour);
    if (perDay !== undefined) limits.set({ provider, per: 'day' }, perDay);
  }
  void new Gauge({
    name: 'rollcall_communication_quota_used',
    help: 'How many messages a provider was given in this hour or day, by all replicas.',
    labelNames,
    registers: [metrics],
    async collect() {
      if (quotas.size === 0) return;
      const uses = await store.usesOf([...quotas.keys()]).catch(() => new Map<string, never>());
      this.reset();
      for (const [provider, used] of uses) {
        for (const state of quotaStates(quotas.get(provider) ?? NONE, used)) {
          this.set({ provider, per: state.per }, state.used);
        }
      }
    },
  });
}

const NONE: Quota = { perHour: undefined, perDay: undefined };
