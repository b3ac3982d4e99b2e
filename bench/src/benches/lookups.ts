import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Bench, BenchContext } from '../bench.ts';
import { type LoadGenerator, startLoadGenerator } from '../load/load-generator.ts';
import { alternate, medianCpu, medianRate, medianRatio } from '../load/rounds.ts';
import { median } from '../load/statistics.ts';
import type { HttpTask, LoadResult, NameRange, Pace } from '../load/tasks.ts';
import type { Answer } from '../peers/answer.ts';
import { atLeast, atMost, figure, type Row } from '../report.ts';
import { clear, LONG_LIVED, quiet, seed, settled } from '../stage/fleet.ts';
import type { Stage } from '../stage/stage.ts';

const NAMESPACE = 'bench-lookups';
const PATH = '/api/v1/services/{name}';
const CONNECTIONS = 32;
const WARM_UP_REQUESTS = 30_000;
const REQUESTS_PER_ROUND = 30_000;
const SETTLE_MS = 2_000;
const PACED_MS = SETTLE_MS + 4_000;

/** `GET /services/{name}` of all names in turn, against bare servers that answer the same bytes. */
export const lookups: Bench = {
  name: 'lookups',
  measures: 'GET /services/{name}: rate and CPU against bare servers, latency at half the load',
  async run({ stage, services, perName, log }: BenchContext) {
    const names: NameRange = { prefix: 'svc-', first: 0, count: services, perName };
    await stage.createNamespace(NAMESPACE);
    const operator = await stage.startOperator({ namespace: NAMESPACE });
    const registry = await stage.startRegistry({ namespace: NAMESPACE });
    await seed(stage, NAMESPACE, { names, life: LONG_LIVED });
    await settled({ registry, operator }, names);
    await quiet(operator);
    const answerFile = await keepAnswer(stage, registry.port, names);
    const http = await stage.startPeer('bare-http', [answerFile]);
    const fastify = await stage.startPeer('bare-fastify', [answerFile]);

    using generator = startLoadGenerator();
    const lookUp = (port: number, pace: Pace): Promise<LoadResult> => run(generator, { port, names, pace });
    for (const { port } of [registry, http, fastify]) await lookUp(port, { amount: WARM_UP_REQUESTS });
    log('lookups: measuring');
    const amount = REQUESTS_PER_ROUND;
    const runs = await alternate({
      registry: { ...registry, run: () => lookUp(registry.port, { amount }) },
      http: { ...http, run: () => lookUp(http.port, { amount }) },
      fastify: { ...fastify, run: () => lookUp(fastify.port, { amount }) },
    });
    log(`lookups: busy: ${runs.describeShares()}`);
    const rate = medianRate(runs.of('registry'));
    const pace = { ratePerSecond: rate / 2, durationMs: PACED_MS, settleMs: SETTLE_MS };
    const paced = await alternate({
      registry: { ...registry, run: () => lookUp(registry.port, pace) },
      http: { ...http, run: () => lookUp(http.port, pace) },
    });
    log(`lookups: busy at half the load: ${paced.describeShares()}`);
    await Promise.all([operator, registry, http, fastify].map((subject) => subject.stop()));
    await clear(stage, NAMESPACE);
    return [
      figure('bare node:http', medianRate(runs.of('http')), 'requests/s'),
      figure('bare Fastify route', medianRate(runs.of('fastify')), 'requests/s'),
      figure('registry', rate, 'requests/s'),
      atLeast(
        0.6,
        figure('registry / bare node:http, requests per second', medianRatio(runs.of('registry'), runs.of('http')), ''),
      ),
      figure(
        'registry / bare node:http, requests per CPU second',
        medianCpu(runs.of('http')) / medianCpu(runs.of('registry')),
        '',
      ),
      figure('CPU per request, bare node:http', medianCpu(runs.of('http')), 'µs'),
      figure('CPU per request, bare Fastify route', medianCpu(runs.of('fastify')), 'µs'),
      atMost(35, figure('CPU per lookup', medianCpu(runs.of('registry')), 'µs')),
      figure("load for the latency: half of the registry's most", rate / 2, 'requests/s'),
      figure('p50 at that load', median(paced.of('registry').map(({ load }) => load.latencyMs.p50)), 'ms'),
      atMost(5, figure('p99 at that load', median(paced.of('registry').map(({ load }) => load.latencyMs.p99)), 'ms')),
      figure('p99 at that load, bare node:http', median(paced.of('http').map(({ load }) => load.latencyMs.p99)), 'ms'),
    ] satisfies Row[];
  },
};

/** Writes down what the registry answers, for the bare servers to answer the same. */
async function keepAnswer(stage: Stage, port: number, names: NameRange): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/services/${names.prefix}00000`);
  if (response.status !== 200) throw new Error(`The registry answered ${response.status}`);
  const ownHeaders = [...response.headers].filter(([name]) => !ADDED_BY_NODE.includes(name));
  const answer: Answer = { headers: Object.fromEntries(ownHeaders), body: await response.text() };
  const file = join(stage.directory, 'lookup.json');
  await writeFile(file, JSON.stringify(answer));
  return file;
}

const ADDED_BY_NODE = ['date', 'connection', 'keep-alive', 'content-length', 'transfer-encoding'];

async function run(generator: LoadGenerator, task: Pick<HttpTask, 'port' | 'names' | 'pace'>): Promise<LoadResult> {
  const load = await generator.run({ ...task, kind: 'http', method: 'GET', path: PATH, connections: CONNECTIONS });
  if (load.failures > 0) throw new Error(`${load.failures} lookups failed: ${JSON.stringify(load.statuses)}`);
  return load;
}
