import { freePorts } from '@rollcall/local/ports.ts';
import type { Bench, BenchContext } from '../bench.ts';
import { type LoadGenerator, startLoadGenerator } from '../load/load-generator.ts';
import { alternate, medianCpu, medianRate, medianRatio, type Run } from '../load/rounds.ts';
import { median } from '../load/statistics.ts';
import type { LoadResult } from '../load/tasks.ts';
import { atLeast, figure, type Row } from '../report.ts';

/** What V8 makes of the code is decided once in each process, and not always alike. */
const STARTS = 3;
const CONNECTIONS = 4;
const CALLS_AT_ONCE = 32;
const WARM_UP_CALLS = 10_000;
const CALLS_PER_ROUND = 15_000;

/** Unary calls of 100 bytes to a server by grpc-js, directly and through the gateway's proxy. */
export const grpc: Bench = {
  name: 'grpc',
  measures: 'unary gRPC calls through the gateway against direct ones: rate, latency, CPU',
  async run({ stage, log }: BenchContext) {
    const direct: Run[] = [];
    const proxied: Run[] = [];
    for (let start = 1; start <= STARTS; start += 1) {
      const [backendPort = 0, proxyPort = 0] = await freePorts(2);
      const backend = await stage.startPeer('grpc-backend', [String(backendPort)]);
      const proxy = await stage.startPeer('grpc-proxy', [String(proxyPort), String(backendPort)]);
      using generator = startLoadGenerator();
      for (const port of [backendPort, proxyPort]) await call(generator, port, WARM_UP_CALLS);
      log(`grpc: measuring, ${start} of ${STARTS}`);
      const runs = await alternate({
        direct: { cpuMs: () => backend.cpuMs(), run: () => call(generator, backendPort, CALLS_PER_ROUND) },
        proxied: { cpuMs: () => proxy.cpuMs(), run: () => call(generator, proxyPort, CALLS_PER_ROUND) },
      });
      log(`grpc: busy: ${runs.describeShares()}`);
      await Promise.all([backend.stop(), proxy.stop()]);
      direct.push(...runs.of('direct'));
      proxied.push(...runs.of('proxied'));
    }
    return [
      figure('direct', medianRate(direct), 'calls/s'),
      figure('through the gateway', medianRate(proxied), 'calls/s'),
      atLeast(0.5, figure('through the gateway / direct, calls per second', medianRatio(proxied, direct), '')),
      figure('CPU per call, the server by grpc-js', medianCpu(direct), 'µs'),
      figure('CPU per call, the proxy', medianCpu(proxied), 'µs'),
      figure('p99 at full load, direct', median(direct.map(({ load }) => load.latencyMs.p99)), 'ms'),
      figure('p99 at full load, through the gateway', median(proxied.map(({ load }) => load.latencyMs.p99)), 'ms'),
    ] satisfies Row[];
  },
};

async function call(generator: LoadGenerator, port: number, amount: number): Promise<LoadResult> {
  const pace = { amount };
  const load = await generator.run({ kind: 'grpc', port, connections: CONNECTIONS, calls: CALLS_AT_ONCE, pace });
  if (load.failures > 0) throw new Error(`${load.failures} calls failed`);
  return load;
}
