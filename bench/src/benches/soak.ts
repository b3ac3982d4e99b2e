import { sleep } from '@rollcall/platform/retry.ts';
import type { Bench, BenchContext } from '../bench.ts';
import { startLoadGenerator } from '../load/load-generator.ts';
import type { NameRange } from '../load/tasks.ts';
import { atMost, figure } from '../report.ts';
import { clear, urlOf } from '../stage/fleet.ts';
import { sumOf } from '../stage/metrics.ts';
import { growthRows, SOAK_MINUTES, sample } from '../stage/samples.ts';

const NAMESPACE = 'bench-soak';
/** Every service beats a little more often than every 30 s. */
const HEARTBEAT_INTERVAL_SECONDS = 10_000 / 350;
/** Until the operator has written the status of all and both processes have met the load. */
const WARM_UP_MS = 90_000;

/**
 * Whether memory and CPU stay what they are while every service sends its heartbeats, and none is
 * lost.
 */
export const soak: Bench = {
  name: 'soak',
  measures: 'memory and CPU over 10 minutes (--minutes) of 350 heartbeats/s from 10,000 services',
  onlyWhenNamed: true,
  async run({ stage, services, minutes = SOAK_MINUTES, log }: BenchContext) {
    const names: NameRange = { prefix: 'svc-', first: 0, count: services };
    await stage.createNamespace(NAMESPACE);
    const registry = await stage.startRegistry({ namespace: NAMESPACE });
    using generator = startLoadGenerator();
    const http = { kind: 'http', port: registry.port, method: 'POST', names, connections: 64 } as const;
    const registering = await generator.run({
      ...http,
      path: '/api/v1/services/register',
      body: JSON.stringify({ service_name: '{name}', service_url: urlOf('{name}'), capabilities: ['rest', 'grpc'] }),
      pace: { amount: services },
    });
    if (registering.failures > 0) throw new Error(`${registering.failures} registrations failed`);
    // Only now: with it, the first would expire before the last are registered.
    const operator = await stage.startOperator({ namespace: NAMESPACE });

    const durationMs = WARM_UP_MS + minutes * 60_000;
    const beating = generator.run({
      ...http,
      path: '/api/v1/services/{name}/heartbeat',
      pace: { ratePerSecond: services / HEARTBEAT_INTERVAL_SECONDS, durationMs },
    });
    log(`soak: ${minutes} minutes after ${WARM_UP_MS / 1000} s of warming up`);
    await Promise.race([sleep(WARM_UP_MS), beating]);
    const [registrySamples, operatorSamples] = await Promise.all([
      sample(registry, minutes * 60_000),
      sample(operator, minutes * 60_000),
    ]);
    const heartbeats = await beating;
    const expirations = sumOf(await operator.metrics(), 'rollcall_expirations_total');
    await Promise.all([operator.stop(), registry.stop()]);
    await clear(stage, NAMESPACE);
    return [
      figure('heartbeats', heartbeats.perSecond, '1/s'),
      atMost(0, figure('failed heartbeats', heartbeats.failures, '')),
      figure('p99 of a heartbeat', heartbeats.latencyMs.p99, 'ms'),
      atMost(0, figure('expired services', expirations, '')),
      ...growthRows('registry', registrySamples),
      ...growthRows('operator', operatorSamples),
    ];
  },
};
