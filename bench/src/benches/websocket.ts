import type { Bench, BenchContext } from '../bench.ts';
import { startLoadGenerator } from '../load/load-generator.ts';
import { atMost, figure } from '../report.ts';
import { watchPeaks } from '../stage/peaks.ts';
import { SUBSCRIBERS, startFollowed } from '../stage/subscribers.ts';

const NAMESPACE = 'bench-websocket';
const EVENTS = 30;
const INTERVAL_MS = 1000;

/**
 * How long a registration needs to reach all who follow it, through API server, registry and
 * gateway.
 */
export const websocket: Bench = {
  name: 'websocket',
  measures: `a registration to ${SUBSCRIBERS} WebSocket subscribers of one gateway: latency, memory`,
  async run({ stage, log }: BenchContext) {
    const { registry, gateway, tokens } = await startFollowed(stage, NAMESPACE);
    using generator = startLoadGenerator();
    log('websocket: measuring');
    const peaks = watchPeaks([gateway]);
    const cpuBeforeMs = await gateway.cpuMs();
    const heard = await generator.run({
      kind: 'subscribers',
      port: gateway.port,
      tokens,
      subscribers: SUBSCRIBERS,
      registryPort: registry.port,
      names: { prefix: 'event-', first: 0, count: EVENTS },
      intervalMs: INTERVAL_MS,
    });
    const cpuMs = (await gateway.cpuMs()) - cpuBeforeMs;
    const [peakMiB = Number.NaN] = await peaks.stop();
    await Promise.all([gateway.stop(), registry.stop()]);
    return [
      figure('subscribers', SUBSCRIBERS, ''),
      figure('p50 from the call that registers to its event', heard.latencyMs.p50, 'ms'),
      atMost(250, figure('p99 from the call that registers to its event', heard.latencyMs.p99, 'ms')),
      atMost(0, figure('events or connections lost', heard.failures, '')),
      figure('CPU per event and subscriber, connecting included', (cpuMs * 1000) / heard.requests, 'µs'),
      figure('CPU of the load, while events came', (heard.generatorCpuMs / heard.elapsedMs) * 100, '% of a core'),
      atMost(260, figure('memory of a gateway, highest', peakMiB, 'MiB')),
    ];
  },
};
