import { freePorts } from '@rollcall/local/ports.ts';
import type { Bench, BenchContext } from '../bench.ts';
import { type LoadGenerator, startLoadGenerator } from '../load/load-generator.ts';
import { alternate, medianCpu, medianRate, medianRatio, type Run } from '../load/rounds.ts';
import { median } from '../load/statistics.ts';
import type { LoadResult } from '../load/tasks.ts';
import { atLeast, figure, type Row } from '../report.ts';
import { createApiClient, register, tokenFrom } from '../stage/api-clients.ts';

const NAMESPACE = 'bench-grpc';
/** As the path of the calls has it. */
const SERVICE = 'bench';
const CLIENT = 'bench';
const SETTINGS = { ROLLCALL_LIMIT_PREMIUM: '1000000', ROLLCALL_ACCESS_LOG: 'off' };

/** What V8 makes of the code is decided once in each process, and not always alike. */
const STARTS = 3;
const CONNECTIONS = 4;
const CALLS_AT_ONCE = 32;
const WARM_UP_CALLS = 10_000;
const CALLS_PER_ROUND = 15_000;

/** Unary calls of 100 bytes to a server by grpc-js, directly and through a gateway, with token and limit (in memory). */
export const grpc: Bench = {
  name: 'grpc',
  measures: 'unary gRPC calls through the gateway against direct ones: rate, latency, CPU',
  async run({ stage, log }: BenchContext) {
    const direct: Run[] = [];
    const proxied: Run[] = [];
    const memory: number[] = [];
    await stage.createNamespace(NAMESPACE);
    await createApiClient(stage.kube, { namespace: NAMESPACE, id: CLIENT });
    const registry = await stage.startRegistry({ namespace: NAMESPACE });
    for (let start = 1; start <= STARTS; start += 1) {
      const [backendPort = 0, gatewayPort = 0] = await freePorts(2);
      const backend = await stage.startPeer('grpc-backend', [String(backendPort)]);
      await register(registry, SERVICE, { url: `http://127.0.0.1:${backendPort}`, capabilities: ['grpc'] });
      const gateway = await stage.startGateway({
        namespace: NAMESPACE,
        settings: {
          ...SETTINGS,
          ROLLCALL_REGISTRY_URLS: `http://127.0.0.1:${registry.port}`,
          ROLLCALL_GRPC_PORT: String(gatewayPort),
        },
      });
      const token = await tokenFrom(gateway, CLIENT);
      using generator = startLoadGenerator();
      const callBackend = (amount: number) => call(generator, { port: backendPort, token, amount });
      const callGateway = (amount: number) => call(generator, { port: gatewayPort, token, amount });
      await callBackend(WARM_UP_CALLS);
      await callGateway(WARM_UP_CALLS);
      log(`grpc: measuring, ${start} of ${STARTS}`);
      const runs = await alternate({
        direct: { cpuMs: () => backend.cpuMs(), run: () => callBackend(CALLS_PER_ROUND) },
        proxied: { cpuMs: () => gateway.cpuMs(), run: () => callGateway(CALLS_PER_ROUND) },
      });
      log(`grpc: busy: ${runs.describeShares()}`);
      memory.push(await gateway.rssMiB());
      await Promise.all([backend.stop(), gateway.stop()]);
      direct.push(...runs.of('direct'));
      proxied.push(...runs.of('proxied'));
    }
    await registry.stop();
    return [
      figure('direct', medianRate(direct), 'calls/s'),
      figure('through the gateway', medianRate(proxied), 'calls/s'),
      atLeast(0.5, figure('through the gateway / direct, calls per second', medianRatio(proxied, direct), '')),
      figure('CPU per call, the server by grpc-js', medianCpu(direct), 'µs'),
      figure('CPU per call, the gateway', medianCpu(proxied), 'µs'),
      figure('p99 at full load, direct', median(direct.map(({ load }) => load.latencyMs.p99)), 'ms'),
      figure('p99 at full load, through the gateway', median(proxied.map(({ load }) => load.latencyMs.p99)), 'ms'),
      figure('memory of a gateway', Math.max(...memory), 'MiB'),
    ] satisfies Row[];
  },
};

interface Calls {
  readonly port: number;
  readonly token: string;
  readonly amount: number;
}

async function call(generator: LoadGenerator, { port, token, amount }: Calls): Promise<LoadResult> {
  const pace = { amount };
  const load = await generator.run({ kind: 'grpc', port, token, connections: CONNECTIONS, calls: CALLS_AT_ONCE, pace });
  if (load.failures > 0) throw new Error(`${load.failures} calls failed`);
  return load;
}
