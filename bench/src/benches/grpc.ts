import { freePorts } from '@rollcall/local/ports.ts';
import type { Bench, BenchContext } from '../bench.ts';
import { type LoadGenerator, startLoadGenerator } from '../load/load-generator.ts';
import { alternate, medianCpu, medianRate, medianRatio, type Run } from '../load/rounds.ts';
import { median } from '../load/statistics.ts';
import type { LoadResult } from '../load/tasks.ts';
import { atLeast, atMost, figure, type Row } from '../report.ts';
import { createApiClient, register, tokenFrom } from '../stage/api-clients.ts';

const NAMESPACE = 'bench-grpc';
/** As the path of the calls has it. */
const SERVICE = 'bench';
const CLIENT = 'bench';
const SETTINGS = { ROLLCALL_LIMIT_PREMIUM: '1000000', ROLLCALL_ACCESS_LOG: 'off' };

/** What V8 makes of the code is decided once in each process, and not always alike. */
const STARTS = 3;
const CALLS_AT_ONCE = 32;
/**
 * Calls of one connection come and go in step, as each process reads and writes a connection's at
 * once: of few connections, as a service that calls another has them, processes in a chain wait for
 * each other. Many are those of many callers.
 */
const FEW = 4;
const MANY = CALLS_AT_ONCE;
const WARM_UP_CALLS = 10_000;
const CALLS_PER_ROUND = 15_000;

/**
 * Unary calls of 100 bytes to a server by grpc-js, directly and through a gateway, with token and
 * limit (in memory).
 */
export const grpc: Bench = {
  name: 'grpc',
  measures: 'unary gRPC calls through the gateway against direct ones: rate, latency, CPU',
  async run({ stage, log }: BenchContext) {
    const few: Measured = { direct: [], proxied: [] };
    const many: Measured = { direct: [], proxied: [] };
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
      const callBackend = (load: Load) => call(generator, { ...load, port: backendPort, token });
      const callGateway = (load: Load) => call(generator, { ...load, port: gatewayPort, token });
      await callBackend({ connections: FEW, amount: WARM_UP_CALLS });
      await callGateway({ connections: FEW, amount: WARM_UP_CALLS });
      for (const { connections, measured } of [
        { connections: FEW, measured: few },
        { connections: MANY, measured: many },
      ]) {
        log(`grpc: measuring, ${start} of ${STARTS}, ${connections} connections`);
        const load = { connections, amount: CALLS_PER_ROUND };
        const runs = await alternate({
          direct: { cpuMs: () => backend.cpuMs(), run: () => callBackend(load) },
          proxied: { cpuMs: () => gateway.cpuMs(), run: () => callGateway(load) },
        });
        log(`grpc: busy: ${runs.describeShares()}`);
        measured.direct.push(...runs.of('direct'));
        measured.proxied.push(...runs.of('proxied'));
      }
      memory.push(await gateway.rssMiB());
      await Promise.all([backend.stop(), gateway.stop()]);
    }
    await registry.stop();
    const highest = figure('memory of a gateway', Math.max(...memory), 'MiB');
    return [...rowsOf(FEW, few), ...rowsOf(MANY, many), atMost(180, highest)];
  },
};

interface Measured {
  readonly direct: Run[];
  readonly proxied: Run[];
}

function p99(runs: readonly Run[]): number {
  return median(runs.map(({ load }) => load.latencyMs.p99));
}

function rowsOf(connections: number, { direct, proxied }: Measured): Row[] {
  const what = `${connections} connections`;
  return [
    figure(`${what}: direct`, medianRate(direct), 'calls/s'),
    figure(`${what}: through the gateway`, medianRate(proxied), 'calls/s'),
    atLeast(
      connections === FEW ? 0.4 : 0.5,
      figure(`${what}: through the gateway / direct, calls per second`, medianRatio(proxied, direct), ''),
    ),
    figure(`${what}: CPU per call, the server by grpc-js`, medianCpu(direct), 'µs'),
    figure(`${what}: CPU per call, the gateway`, medianCpu(proxied), 'µs'),
    figure(`${what}: p99 at full load, direct`, p99(direct), 'ms'),
    figure(`${what}: p99 at full load, through the gateway`, p99(proxied), 'ms'),
  ];
}

interface Load {
  readonly connections: number;
  readonly amount: number;
}

interface Calls extends Load {
  readonly port: number;
  readonly token: string;
}

async function call(generator: LoadGenerator, { port, token, connections, amount }: Calls): Promise<LoadResult> {
  const pace = { amount };
  const load = await generator.run({ kind: 'grpc', port, token, connections, calls: CALLS_AT_ONCE, pace });
  if (load.failures > 0) throw new Error(`${load.failures} calls failed`);
  return load;
}
