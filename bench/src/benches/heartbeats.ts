import type { Bench, BenchContext } from '../bench.ts';
import { startLoadGenerator } from '../load/load-generator.ts';
import { alternate, failuresOf, medianCpu, medianRate, medianRatio } from '../load/rounds.ts';
import type { LoadResult, NameRange } from '../load/tasks.ts';
import { atLeast, atMost, figure } from '../report.ts';
import { clear, LONG_LIVED, seed, settled } from '../stage/fleet.ts';
import { sumOf } from '../stage/metrics.ts';
import type { RollcallSubject } from '../stage/stage.ts';

const NAMESPACE = 'bench-heartbeats';
/** As many as the registry has sockets to the API server. */
const CONNECTIONS = 64;
/** Five rounds, one to warm up, one for the bare client. */
const SLICES = 7;
const ABSORBED_PER_ROUND = 30_000;

/**
 * `POST /services/{name}/heartbeat`: written heartbeats, against bare Lease patches, and absorbed
 * ones.
 */
export const heartbeats: Bench = {
  name: 'heartbeats',
  measures: 'POST /services/{name}/heartbeat: written ones against a bare client, absorbed ones',
  async run({ stage, services, perName, log }: BenchContext) {
    await stage.createNamespace(NAMESPACE);
    const operator = await stage.startOperator({ namespace: NAMESPACE });
    const registry = await stage.startRegistry({ namespace: NAMESPACE });
    const all: NameRange = { prefix: 'svc-', first: 0, count: services, perName };
    await seed(stage, NAMESPACE, { names: all, life: LONG_LIVED });
    await settled({ registry, operator }, all);
    using generator = startLoadGenerator();
    const beat = (names: NameRange, amount: number): Promise<LoadResult> =>
      generator.run({
        kind: 'http',
        port: registry.port,
        method: 'POST',
        path: '/api/v1/services/{name}/heartbeat',
        names,
        connections: CONNECTIONS,
        pace: { amount },
      });
    const patch = (names: NameRange): Promise<LoadResult> =>
      generator.run({
        kind: 'leases',
        kubeconfigPath: stage.kubeconfigPath,
        namespace: NAMESPACE,
        names,
        connections: CONNECTIONS,
        pace: { amount: names.count },
      });

    const count = Math.floor(services / SLICES);
    const slice = (index: number): NameRange => ({ ...all, first: index * count, count });
    await beat(slice(0), count);
    await patch(slice(1));
    log('heartbeats: measuring');
    const written = await alternate({
      registry: { ...registry, run: (round) => beat(slice(round + 2), count) },
      bare: { ...registry, run: () => patch(slice(1)) },
    });
    await expectPending(registry, 0);
    log(`heartbeats: busy when written: ${written.describeShares()}`);

    const beaten: NameRange = { ...all, first: count * 2, count: count * (SLICES - 2) };
    await beat(beaten, ABSORBED_PER_ROUND);
    const absorbed = await alternate({ registry: { ...registry, run: () => beat(beaten, ABSORBED_PER_ROUND) } });
    await expectPending(registry, beaten.count);
    log(`heartbeats: busy when absorbed: ${absorbed.describeShares()}`);
    await Promise.all([operator.stop(), registry.stop()]);
    await clear(stage, NAMESPACE);

    const writtenRate = medianRate(written.of('registry'));
    const absorbedRate = medianRate(absorbed.of('registry'));
    const failures = failuresOf([...written.of('registry'), ...written.of('bare'), ...absorbed.of('registry')]);
    return [
      figure('Lease patches by a bare undici client', medianRate(written.of('bare')), 'requests/s'),
      figure('written heartbeats', writtenRate, 'requests/s'),
      atLeast(
        0.7,
        figure('written heartbeats / bare patches', medianRatio(written.of('registry'), written.of('bare')), ''),
      ),
      figure('CPU per written heartbeat', medianCpu(written.of('registry')), 'µs'),
      figure('absorbed heartbeats', absorbedRate, 'requests/s'),
      atLeast(10, figure('absorbed / written', absorbedRate / writtenRate, '')),
      atMost(50, figure('CPU per absorbed heartbeat', medianCpu(absorbed.of('registry')), 'µs')),
      atMost(0, figure('failed requests', failures, '')),
    ];
  },
};

/**
 * @throws when other heartbeats were written than should have been: something else was measured
 * then.
 */
async function expectPending(registry: RollcallSubject, count: number): Promise<void> {
  const pending = sumOf(await registry.metrics(), 'rollcall_registry_pending_heartbeats');
  if (pending !== count) throw new Error(`${pending} heartbeats are not written, where ${count} should be`);
}
