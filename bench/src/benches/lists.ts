import type { Bench, BenchContext } from '../bench.ts';
import { startLoadGenerator } from '../load/load-generator.ts';
import { measure } from '../load/rounds.ts';
import type { HttpTask, LoadResult, NameRange } from '../load/tasks.ts';
import { atLeast, atMost, figure } from '../report.ts';
import { clear, LONG_LIVED, seed, settled } from '../stage/fleet.ts';
import type { RollcallSubject } from '../stage/stage.ts';

const NAMESPACE = 'bench-lists';
const CONNECTIONS = 4;
const WARM_UP_LISTS = 50;
const LISTS = 500;
const HEARTBEATS_PER_SECOND = 350;
const BUSY_MS = 20_000;

/** `GET /services`, all of them, while nothing happens and while heartbeats change the answer. */
export const lists: Bench = {
  name: 'lists',
  measures: 'GET /services with all registrations: rate and CPU, idle and under 350 heartbeats/s',
  async run({ stage, services, perName, log }: BenchContext) {
    const names: NameRange = { prefix: 'svc-', first: 0, count: services, perName };
    await stage.createNamespace(NAMESPACE);
    const operator = await stage.startOperator({ namespace: NAMESPACE });
    const registry = await stage.startRegistry({ namespace: NAMESPACE });
    await seed(stage, NAMESPACE, { names, life: LONG_LIVED });
    await settled({ registry, operator }, names);
    const bytes = await sizeOfList(registry);
    using lister = startLoadGenerator();
    using heart = startLoadGenerator();
    const list = (pace: HttpTask['pace']): Promise<LoadResult> =>
      lister.run({
        kind: 'http',
        port: registry.port,
        method: 'GET',
        path: '/api/v1/services',
        names,
        connections: CONNECTIONS,
        pace,
      });
    await list({ amount: WARM_UP_LISTS });
    log('lists: measuring');
    const idle = await measure({ ...registry, run: () => list({ amount: LISTS }) });

    const beating = heart.run({
      kind: 'http',
      port: registry.port,
      method: 'POST',
      path: '/api/v1/services/{name}/heartbeat',
      names,
      connections: 64,
      pace: { ratePerSecond: HEARTBEATS_PER_SECOND, durationMs: BUSY_MS },
    });
    const busy = await measure({
      ...registry,
      run: () => list({ ratePerSecond: 50, durationMs: BUSY_MS / 2 }),
    });
    const most = await list({ amount: LISTS / 2 });
    const heartbeats = await beating;
    await Promise.all([operator.stop(), registry.stop()]);
    await clear(stage, NAMESPACE);
    const failures = idle.load.failures + busy.load.failures + most.failures + heartbeats.failures;
    return [
      figure('size of the answer', bytes / 2 ** 20, 'MiB'),
      atLeast(50, figure('lists', idle.load.perSecond, 'requests/s')),
      figure('CPU per list', idle.cpuMs / idle.load.requests, 'ms'),
      atLeast(50, figure('lists under 350 heartbeats/s', most.perSecond, 'requests/s')),
      figure('CPU of 50 lists/s and 350 heartbeats/s', (busy.cpuMs / busy.load.elapsedMs) * 100, '% of a core'),
      figure('p99 of a list meanwhile', busy.load.latencyMs.p99, 'ms'),
      figure('p99 of a heartbeat meanwhile', heartbeats.latencyMs.p99, 'ms'),
      atMost(0, figure('failed requests', failures, '')),
    ];
  },
};

async function sizeOfList({ port }: RollcallSubject): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/services`);
  return (await response.arrayBuffer()).byteLength;
}
