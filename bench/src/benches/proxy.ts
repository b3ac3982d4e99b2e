import { createPublicKey } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheDirectory } from '@rollcall/local/cache-directory.ts';
import { type Redis, startRedis } from '@rollcall/local/redis.ts';
import { findRedisBinary } from '@rollcall/local/redis-binary.ts';
import type { JWK } from 'jose';
import type { Bench, BenchContext } from '../bench.ts';
import { type LoadGenerator, startLoadGenerator } from '../load/load-generator.ts';
import { alternate, type Contestant, medianCpu, medianRate, type Runs } from '../load/rounds.ts';
import { median } from '../load/statistics.ts';
import type { LoadResult } from '../load/tasks.ts';
import { atMost, figure, type Row } from '../report.ts';
import { createApiClient, register, tokenFrom } from '../stage/api-clients.ts';
import { findHaproxy } from '../stage/haproxy.ts';
import type { RollcallSubject, Stage, Subject } from '../stage/stage.ts';

const NAMESPACE = 'bench-proxy';
const SERVICE = 'upstream';
const CLIENT = 'bench';
const CONNECTIONS = 32;
const TOKENS = 32;
const WARM_UP_REQUESTS = 30_000;
const REQUESTS_PER_ROUND = 20_000;
const SETTINGS = { ROLLCALL_LIMIT_PREMIUM: '1000000', ROLLCALL_ACCESS_LOG: 'off' };

/**
 * `GET /api/v1/upstream/items` with a token, small JSON, one upstream: by the gateway, HAProxy and
 * plain Fastify.
 */
export const proxy: Bench = {
  name: 'proxy',
  measures: 'requests through the gateway, with token and limit, against HAProxy and plain Fastify: CPU, latency',
  async run({ stage, log }: BenchContext) {
    await using stack = new AsyncDisposableStack();
    const upstream = await startUpstream(stage);
    const redis = stack.use(await startOwnRedis(stage, log));
    const registry = await startRegistered(stage, upstream.port);
    const settings = { ...SETTINGS, ROLLCALL_REGISTRY_URLS: `http://127.0.0.1:${registry.port}` };
    const memory = await stage.startGateway({ namespace: NAMESPACE, settings });
    const shared = await stage.startGateway({
      namespace: NAMESPACE,
      settings: { ...settings, ROLLCALL_REDIS_URL: redis.url },
    });
    const token = await tokenFrom(memory, CLIENT);
    for (const gateway of [memory, shared]) await issueTokens(gateway);
    const jwks = `http://127.0.0.1:${memory.port}/.well-known/jwks.json`;
    const fastify = await stage.startPeer('fastify-gateway', [`http://127.0.0.1:${upstream.port}`, jwks]);
    const haproxy = await startHaproxy(stage, { jwks, upstreamPort: upstream.port });

    using generator = startLoadGenerator();
    const subjects = new Map<string, Subject>(Object.entries({ upstream, memory, shared, fastify }));
    if (haproxy !== undefined) subjects.set('haproxy', haproxy);
    for (const { port } of subjects.values()) await load(generator, { port, token, amount: WARM_UP_REQUESTS });
    log('proxy: measuring');
    const contestants = [...subjects].map(([name, subject]): [string, Contestant] => [
      name,
      {
        cpuMs: () => subject.cpuMs(),
        run: () => load(generator, { port: subject.port, token, amount: REQUESTS_PER_ROUND }),
      },
    ]);
    const runs = await alternate(Object.fromEntries(contestants));
    log(`proxy: busy: ${runs.describeShares()}`);
    const rss = await Promise.all([memory.rssMiB(), shared.rssMiB()]);
    await Promise.all([...subjects.values(), registry].map((subject) => subject.stop()));
    return rowsOf(runs, { hasHaproxy: haproxy !== undefined, rssMiB: Math.max(...rss) });
  },
};

function rowsOf(runs: Runs<string>, { hasHaproxy, rssMiB }: { hasHaproxy: boolean; rssMiB: number }): Row[] {
  const p99 = (name: string) => median(runs.of(name).map((run) => run.load.latencyMs.p99));
  const peers = hasHaproxy ? ['haproxy', 'fastify'] : ['fastify'];
  return [
    figure('CPU per request, the upstream alone', medianCpu(runs.of('upstream')), 'µs'),
    atMost(100, figure('CPU per request, gateway, limit in memory', medianCpu(runs.of('memory')), 'µs')),
    atMost(130, figure('CPU per request, gateway, limit in Redis', medianCpu(runs.of('shared')), 'µs')),
    ...peers.map((name) => figure(`CPU per request, ${name}`, medianCpu(runs.of(name)), 'µs')),
    figure('gateway, limit in memory', medianRate(runs.of('memory')), 'requests/s'),
    figure('gateway, limit in Redis', medianRate(runs.of('shared')), 'requests/s'),
    ...peers.map((name) => figure(name, medianRate(runs.of(name)), 'requests/s')),
    atMost(7, figure('p99 at full load, gateway, limit in memory', p99('memory'), 'ms')),
    atMost(7, figure('p99 at full load, gateway, limit in Redis', p99('shared'), 'ms')),
    ...peers.map((name) => figure(`p99 at full load, ${name}`, p99(name), 'ms')),
    ...(hasHaproxy ? ratioRows(runs, p99) : []),
    atMost(180, figure('memory of a gateway', rssMiB, 'MiB')),
  ];
}

/** Of HAProxy on the machine that the limits were set for: µs and ms. */
const HAPROXY_THERE = { cpu: 46, p99: 2.8 };

/** The same limits on a machine with faster or slower cores. */
function ratioRows(runs: Runs<string>, p99: (name: string) => number): Row[] {
  const cpu = (name: string) => medianCpu(runs.of(name)) / medianCpu(runs.of('haproxy'));
  const latency = (name: string) => p99(name) / p99('haproxy');
  return [
    atMost(rounded(100 / HAPROXY_THERE.cpu), figure('CPU, gateway, limit in memory / HAProxy', cpu('memory'), '')),
    atMost(rounded(130 / HAPROXY_THERE.cpu), figure('CPU, gateway, limit in Redis / HAProxy', cpu('shared'), '')),
    atMost(rounded(7 / HAPROXY_THERE.p99), figure('p99, gateway, limit in memory / HAProxy', latency('memory'), '')),
    atMost(rounded(7 / HAPROXY_THERE.p99), figure('p99, gateway, limit in Redis / HAProxy', latency('shared'), '')),
  ];
}

function rounded(limit: number): number {
  return Math.round(limit * 100) / 100;
}

async function startUpstream(stage: Stage): Promise<Subject> {
  const file = join(stage.directory, 'items.json');
  const items = [
    { id: 1, name: 'one' },
    { id: 2, name: 'two' },
  ];
  const body = JSON.stringify({ items, total: items.length });
  await writeFile(file, JSON.stringify({ headers: { 'content-type': 'application/json' }, body }));
  return stage.startPeer('bare-http', [file]);
}

async function startOwnRedis(stage: Stage, log: (line: string) => void): Promise<Redis> {
  const binary = await findRedisBinary({
    redisServer: process.env['REDIS_SERVER'],
    cacheDirectory: cacheDirectory(process.env, 'redis'),
    log,
  });
  return startRedis({ directory: join(stage.directory, 'redis'), binary });
}

/** A registry with the upstream in it, and a client of the gateway's. */
async function startRegistered(stage: Stage, upstreamPort: number): Promise<RollcallSubject> {
  await stage.createNamespace(NAMESPACE);
  await createApiClient(stage.kube, { namespace: NAMESPACE, id: CLIENT });
  const registry = await stage.startRegistry({ namespace: NAMESPACE });
  await register(registry, SERVICE, { url: `http://127.0.0.1:${upstreamPort}` });
  return registry;
}

/** Checking a secret needs 16 MiB for a moment, which a gateway may keep. */
async function issueTokens(gateway: RollcallSubject): Promise<void> {
  await Promise.all(Array.from({ length: TOKENS }, () => tokenFrom(gateway, CLIENT)));
}

interface Fronted {
  readonly jwks: string;
  readonly upstreamPort: number;
}

async function startHaproxy(stage: Stage, { jwks, upstreamPort }: Fronted): Promise<Subject | undefined> {
  const binary = await findHaproxy(process.env);
  if (binary === undefined) return undefined;
  const { keys } = (await (await fetch(jwks)).json()) as { keys: JWK[] };
  const pem = join(stage.directory, 'gateway.pem');
  const [key = {}] = keys;
  await writeFile(pem, createPublicKey({ key, format: 'jwk' }).export({ type: 'spki', format: 'pem' }));
  return stage.startHaproxy(
    binary,
    `
global
  nbthread 1
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
frontend gateway
  bind 127.0.0.1:{port}
  stick-table type string len 64 size 100k expire 2m store http_req_rate(60s)
  http-request deny deny_status 401 unless { http_auth_bearer,jwt_verify("ES256","${pem}") 1 }
  http-request deny deny_status 401 unless { http_auth_bearer,jwt_payload_query('$.iss') -m str rollcall }
  http-request track-sc0 http_auth_bearer,jwt_payload_query('$.sub')
  http-request deny deny_status 429 if { sc_http_req_rate(0) gt 10000000 }
  default_backend upstream
backend upstream
  server upstream 127.0.0.1:${upstreamPort}
`,
  );
}

interface Asked {
  readonly port: number;
  readonly token: string;
  readonly amount: number;
}

async function load(generator: LoadGenerator, { port, token, amount }: Asked): Promise<LoadResult> {
  const result = await generator.run({
    kind: 'http',
    method: 'GET',
    path: `/api/v1/${SERVICE}/items`,
    headers: { authorization: `Bearer ${token}` },
    names: { prefix: 'x-', first: 0, count: 1 },
    port,
    connections: CONNECTIONS,
    pace: { amount },
  });
  if (result.failures > 0) throw new Error(`${result.failures} requests failed: ${JSON.stringify(result.statuses)}`);
  return result;
}
