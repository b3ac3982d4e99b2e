import { sleep } from '@rollcall/platform/retry.ts';
import type { Bench, BenchContext } from '../bench.ts';
import { startLoadGenerator } from '../load/load-generator.ts';
import type { NameRange } from '../load/tasks.ts';
import { atMost, figure } from '../report.ts';
import { clear, settled, urlOf } from '../stage/fleet.ts';
import { watchPeaks } from '../stage/peaks.ts';

const NAMESPACE = 'bench-memory';
/** No registration expires during the bench. */
const settings = { ROLLCALL_TTL_SECONDS: '86400' };
const SETTLE_MS = 20_000;
const LIMIT_MIB = 250;
const READY_LIMIT_SECONDS = 10;

/**
 * Memory of registry and operator with all registrations, made one by one and found at the start;
 * time until ready.
 */
export const memory: Bench = {
  name: 'memory',
  measures: 'memory of registry and operator, time from start to ready, rate of registrations',
  async run({ stage, services, perName, log }: BenchContext) {
    const names: NameRange = { prefix: 'svc-', first: 0, count: services, perName };
    await stage.createNamespace(NAMESPACE);
    const deploy = { namespace: NAMESPACE, settings };
    const grown = { operator: await stage.startOperator(deploy), registry: await stage.startRegistry(deploy) };
    using generator = startLoadGenerator();
    log('memory: registering');
    const peaks = watchPeaks([grown.operator, grown.registry]);
    const registering = await generator.run({
      kind: 'http',
      port: grown.registry.port,
      method: 'POST',
      path: '/api/v1/services/register',
      body: JSON.stringify({ service_name: '{name}', service_url: urlOf('{name}'), capabilities: ['rest', 'grpc'] }),
      names,
      connections: 64,
      pace: { amount: services },
    });
    await settled(grown, names);
    await sleep(SETTLE_MS);
    const [operatorPeak = Number.NaN, registryPeak = Number.NaN] = await peaks.stop();
    const after = { operator: await grown.operator.rssMiB(), registry: await grown.registry.rssMiB() };
    await Promise.all([grown.operator.stop(), grown.registry.stop()]);

    log('memory: starting again');
    const fresh = { operator: await stage.startOperator(deploy), registry: await stage.startRegistry(deploy) };
    await settled(fresh, names);
    await sleep(SETTLE_MS);
    const again = { operator: await fresh.operator.rssMiB(), registry: await fresh.registry.rssMiB() };
    await Promise.all([fresh.operator.stop(), fresh.registry.stop()]);
    await clear(stage, NAMESPACE);
    return [
      figure('registrations over HTTP', registering.perSecond, 'requests/s'),
      atMost(0, figure('failed registrations', registering.failures, '')),
      atMost(LIMIT_MIB, figure('registry, highest while registering', registryPeak, 'MiB')),
      atMost(LIMIT_MIB, figure('registry, 20 s later', after.registry, 'MiB')),
      atMost(LIMIT_MIB, figure('registry, started with all', again.registry, 'MiB')),
      atMost(LIMIT_MIB, figure('operator, highest while registering', operatorPeak, 'MiB')),
      atMost(LIMIT_MIB, figure('operator, 20 s later', after.operator, 'MiB')),
      atMost(LIMIT_MIB, figure('operator, started with all', again.operator, 'MiB')),
      atMost(READY_LIMIT_SECONDS, figure('registry, from start to ready', fresh.registry.readyAfterMs / 1000, 's')),
      atMost(READY_LIMIT_SECONDS, figure('operator, from start to ready', fresh.operator.readyAfterMs / 1000, 's')),
    ];
  },
};
