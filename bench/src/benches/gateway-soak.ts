import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep } from '@rollcall/platform/retry.ts';
import type { Bench, BenchContext } from '../bench.ts';
import { startLoadGenerator } from '../load/load-generator.ts';
import { atMost, figure } from '../report.ts';
import { register } from '../stage/api-clients.ts';
import { growthRows, SOAK_MINUTES, sample, sampleCpu } from '../stage/samples.ts';
import { SUBSCRIBERS, startFollowed } from '../stage/subscribers.ts';

const NAMESPACE = 'bench-gateway-soak';
const REQUESTS_PER_SECOND = 1000;
const EVENT_INTERVAL_MS = 1000;
const CONNECTIONS = 32;
/** Until all subscribers are there and the process has met the load. */
const WARM_UP_MS = 60_000;

/** Whether a gateway's memory and CPU stay what they are under requests and events. */
export const gatewaySoak: Bench = {
  name: 'gateway-soak',
  measures: `memory and CPU of a gateway over 10 minutes (--minutes) of 1,000 requests/s and an event/s to ${SUBSCRIBERS} subscribers`,
  onlyWhenNamed: true,
  async run({ stage, minutes = SOAK_MINUTES, log }: BenchContext) {
    const file = join(stage.directory, 'soak-items.json');
    await writeFile(file, JSON.stringify({ headers: { 'content-type': 'application/json' }, body: '{"items":[]}' }));
    const upstream = await stage.startPeer('bare-http', [file]);
    const settings = { ROLLCALL_LIMIT_PREMIUM: '1000000' };
    const { registry, gateway, tokens } = await startFollowed(stage, NAMESPACE, settings);
    await register(registry, 'upstream', { url: `http://127.0.0.1:${upstream.port}` });
    using requests = startLoadGenerator();
    using subscribers = startLoadGenerator();
    const durationMs = WARM_UP_MS + minutes * 60_000;
    const asking = requests.run({
      kind: 'http',
      method: 'GET',
      path: '/api/v1/upstream/items',
      headers: { authorization: `Bearer ${tokens[0] ?? ''}` },
      names: { prefix: 'x-', first: 0, count: 1 },
      port: gateway.port,
      connections: CONNECTIONS,
      pace: { ratePerSecond: REQUESTS_PER_SECOND, durationMs, settleMs: WARM_UP_MS },
    });
    const following = subscribers.run({
      kind: 'subscribers',
      port: gateway.port,
      tokens,
      subscribers: SUBSCRIBERS,
      registryPort: registry.port,
      names: { prefix: 'event-', first: 0, count: Math.ceil(durationMs / EVENT_INTERVAL_MS) },
      intervalMs: EVENT_INTERVAL_MS,
    });
    log(`gateway-soak: ${minutes} minutes after ${WARM_UP_MS / 1000} s of warming up`);
    await Promise.race([sleep(WARM_UP_MS), asking, following]);
    const [samples, upstreamSamples] = await Promise.all([
      sample(gateway, minutes * 60_000),
      sampleCpu(upstream, minutes * 60_000),
    ]);
    const [asked, heard] = await Promise.all([asking, following]);
    await Promise.all([gateway.stop(), registry.stop(), upstream.stop()]);
    const rows = growthRows('gateway', samples, upstreamSamples);
    const highest = rows.find(({ measure }) => measure === 'gateway: highest memory');
    return [
      figure('requests', asked.perSecond, '1/s'),
      atMost(0, figure('failed requests', asked.failures, '')),
      figure('p99 of a request', asked.latencyMs.p99, 'ms'),
      atMost(0, figure('events or connections lost', heard.failures, '')),
      figure('p99 of an event', heard.latencyMs.p99, 'ms'),
      ...rows.filter((row) => row !== highest),
      ...(highest === undefined ? [] : [atMost(260, highest)]),
    ];
  },
};
