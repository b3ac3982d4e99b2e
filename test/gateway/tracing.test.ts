import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { status } from '@grpc/grpc-js';
import { freePorts } from '@rollcall/local/ports.ts';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistryProcess } from '../support/registry.ts';
import { type Replica, startReplica } from '../support/replica.ts';
import { type Backend, createClient, startBackend, startGatewayProcess, tokenOf } from './gateway.ts';
import { createEchoClient, startBackend as startGrpcBackend } from './grpc-fixture.ts';
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from './otlp-receiver.ts';

let namespace: TestNamespace;
let registry: Replica;
let collector: OtlpReceiver;
let gateway: Replica;
let grpcPort: number;
let shop: Backend;
let token: string;
/** So many requests to the shop are reset from now on. */
let resets = 0;
const stack = new AsyncDisposableStack();

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const EXPORT_AT_ONCE = { OTEL_BSP_SCHEDULE_DELAY: '50' };

beforeAll(async () => {
  namespace = await createNamespace('tracing');
  const database = stack.use(await createDatabase());
  collector = stack.use(await startOtlpReceiver());
  registry = stack.use(
    await startRegistryProcess({
      namespace: namespace.name,
      databaseUrl: database.url,
      settings: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...EXPORT_AT_ONCE },
    }),
  );
  grpcPort = (await freePorts(1))[0] ?? 0;
  gateway = stack.use(
    await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=team%20a',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
      ...EXPORT_AT_ONCE,
      ROLLCALL_GRPC_PORT: String(grpcPort),
      ROLLCALL_TRUSTED_PROXIES: '127.0.0.1',
    }),
  );
  token = await tokenOf(gateway, await createClient(namespace, { id: 'tests', scopes: ['registrations:read'] }));
  shop = stack.use(
    await startBackend((request, response) => {
      if (resets > 0) {
        resets -= 1;
        request.socket.resetAndDestroy();
      } else if (request.url?.includes('/half') === true) {
        request.socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf');
      } else response.end('fine');
    }),
  );
  await registry.call('POST', '/services/register', { service_name: 'shop', service_url: `${shop.url}/base` });
  await isReachable(gateway);
});

afterAll(() => stack.disposeAsync());

function start(settings: Record<string, string>): Promise<Replica> {
  return startGatewayProcess({
    namespace,
    registry: registry.url,
    // A machine that stops for seconds must not look like a service that is unavailable.
    settings: { ROLLCALL_LIMIT_PREMIUM: '100000', ROLLCALL_UPSTREAM_CONNECT_MS: '30000', ...settings },
  });
}

interface CallOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: string;
  readonly at?: Replica;
}

async function call(path: string, { headers, method = 'GET', at = gateway }: CallOptions = {}): Promise<number> {
  const answer = await fetch(`${at.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...headers },
  });
  await answer.text().catch(() => undefined);
  return answer.status;
}

function isReachable(at: Replica): Promise<void> {
  return vi.waitFor(async () => expect(await call('/api/v1/shop/', { at })).toBe(200), { timeout: 30_000 });
}

let traces = 0;

/**
 * Calls as a part of a trace of its own.
 *
 * @returns what was exported of that, the server's span and those below it.
 */
async function traced(path: string, options: CallOptions & { readonly clients: number }) {
  traces += 1;
  const traceId = traces.toString(16).padStart(32, 'a');
  const headers = { traceparent: `00-${traceId}-${SPAN}-01`, ...options.headers };
  const code = await call(path, { ...options, headers });
  const spans = await collector.trace(traceId, (found) => found.length > options.clients);
  return { code, traceId, ...split(spans) };
}

function split(spans: readonly ReceivedSpan[]) {
  const servers = spans.filter(({ kind }) => kind === 'server');
  const clients = spans.filter(({ kind }) => kind === 'client');
  const [server] = servers;
  if (server === undefined || servers.length > 1) throw new Error(`${servers.length} spans of the server`);
  expect(clients.map(({ parentId }) => parentId)).toEqual(clients.map(() => server.spanId));
  return { server, clients };
}

/** As Kubernetes would. */
async function stopInTime({ process: { pid, exited } }: Replica): Promise<void> {
  process.kill(pid, 'SIGTERM');
  expect(await exited).toMatchObject({ code: 0 });
}

function logOf({ process: { logFile } }: Replica): Promise<string> {
  return readFile(logFile, 'utf8');
}

/** What is logged of a request when its answer has been sent. */
function accessLineOf(replica: Replica, traceId: string): Promise<unknown> {
  return vi.waitFor(
    async () => JSON.parse((await logOf(replica)).split('\n').find((line) => line.includes(traceId)) ?? ''),
    { timeout: 20_000, interval: 100 },
  );
}

describe('a request', () => {
  test('is a span in the trace of its caller, and the attempt at the service one below it', async () => {
    const { code, traceId, server, clients } = await traced('/api/v1/shop/orders/7?token=hunter2', {
      clients: 1,
      headers: {
        tracestate: 'vendor=1',
        'user-agent': 'tests/1',
        'x-forwarded-for': '192.0.2.7',
        'x-forwarded-proto': 'https',
        'x-forwarded-host': 'api.example.com',
      },
    });
    expect(code).toBe(200);
    expect(server).toMatchObject({
      name: 'GET /api/v1/{service}',
      parentId: SPAN,
      traceState: 'vendor=1',
      failed: false,
      attributes: {
        'http.request.method': 'GET',
        'http.route': '/api/v1/{service}',
        'http.response.status_code': 200,
        'url.path': '/api/v1/shop/orders/7',
        'url.scheme': 'https',
        'server.address': 'api.example.com',
        'client.address': '192.0.2.7',
        'user_agent.original': 'tests/1',
        'rollcall.client': 'tests',
        'rollcall.service': 'shop',
      },
      resource: {
        'service.name': 'rollcall-gateway',
        'service.version': '0.1.0',
        'deployment.environment.name': 'test',
        'telemetry.sdk.name': 'opentelemetry',
      },
    });
    const { port } = new URL(shop.url);
    expect(clients).toHaveLength(1);
    expect(clients[0]).toMatchObject({
      name: 'GET',
      failed: false,
      attributes: {
        'http.request.method': 'GET',
        'http.response.status_code': 200,
        'url.full': `${shop.url}/base/api/v1/orders/7`,
        'server.address': '127.0.0.1',
        'server.port': Number(port),
      },
    });
    expect(clients[0]?.attributes).not.toHaveProperty('http.request.resend_count');
    expect(server.ms).toBeGreaterThanOrEqual(clients[0]?.ms ?? 0);
    expect(shop.requests.at(-1)?.headers).toMatchObject({
      traceparent: `00-${traceId}-${clients[0]?.spanId}-01`,
      tracestate: 'vendor=1',
    });
    const exported = JSON.stringify(collector.spans);
    for (const secret of [token, 'hunter2', 'eyJ']) expect(exported).not.toContain(secret);
    // The registry exports to the same collector, without that header.
    const request = { path: '/v1/traces', headers: expect.objectContaining({ 'x-tenant': 'team a' }) };
    expect(collector.requests).toContainEqual(expect.objectContaining(request));
    expect(await accessLineOf(gateway, traceId)).toMatchObject({ trace_id: traceId, path: '/api/v1/shop/orders/7' });
  });

  test('to a path with a secret shows none of it', async () => {
    await registry.call('POST', '/services/register', { service_name: 'payment', service_url: shop.url });
    await vi.waitFor(async () => expect(await call('/pay/')).toBe(200), { timeout: 30_000 });
    const { code, server, clients } = await traced('/pay/hunter3/confirm?hunter4', { clients: 1 });
    expect(code).toBe(200);
    expect(shop.requests.at(-1)?.url).toBe('/pay/hunter3/confirm?hunter4');
    expect(server).toMatchObject({ name: 'GET /pay', attributes: { 'url.path': '/pay/*', 'http.route': '/pay' } });
    expect(clients[0]?.attributes['url.full']).toBe(`${shop.url}/*`);
    expect(JSON.stringify(collector.spans)).not.toMatch(/hunter[34]/);
  });

  test('without a trace begins one', async () => {
    expect(await call('/api/v1/shop/new', { headers: { tracestate: 'orphan=1' } })).toBe(200);
    const { traceparent = '', tracestate } = shop.requests.at(-1)?.headers ?? {};
    const [, traceId = '', spanId, flags] = String(traceparent).split('-');
    expect([flags, tracestate]).toEqual(['01', undefined]);
    const { server, clients } = split(await collector.trace(traceId, (spans) => spans.length > 1));
    expect([server.parentId, clients[0]?.spanId]).toEqual(['', spanId]);
  });

  test('of a trace that its caller does not record is not recorded, and the service sees that', async () => {
    expect(await call('/api/v1/shop/quiet', { headers: { traceparent: `00-${TRACE}-${SPAN}-00` } })).toBe(200);
    const { traceparent } = shop.requests.at(-1)?.headers ?? {};
    expect(traceparent).toMatch(new RegExp(`^00-${TRACE}-(?!${SPAN})[0-9a-f]{16}-00$`));
    await traced('/api/v1/shop/loud', { clients: 1 });
    expect(collector.spans.filter(({ traceId }) => traceId === TRACE)).toEqual([]);
  });

  test('that is refused has not failed, and goes no further', async () => {
    const unknown = await traced('/api/v1/nobody/x', { clients: 0 });
    expect(unknown).toMatchObject({ code: 404, clients: [], server: { failed: false, name: 'GET /api/v1/{service}' } });
    expect(unknown.server.attributes).toMatchObject({ 'http.response.status_code': 404, 'rollcall.client': 'tests' });
    const denied = await traced('/api/v1/shop/x', { clients: 0, headers: { authorization: 'Bearer hunter2' } });
    expect(denied).toMatchObject({ code: 401, clients: [], server: { failed: false } });
    expect(denied.server.attributes).not.toHaveProperty('rollcall.client');
  });

  test('to a route of the gateway itself is traced, unless monitoring asks all the time', async () => {
    const { server } = await traced('/.well-known/jwks.json', { clients: 0 });
    expect(server).toMatchObject({
      name: 'GET /.well-known/jwks.json',
      attributes: { 'http.response.status_code': 200 },
    });
    expect(await call('/api/health', { headers: { traceparent: `00-${TRACE}-${SPAN}-01` } })).toBe(200);
    await traced('/.well-known/jwks.json', { clients: 0 });
    expect(collector.spans.filter(({ attributes }) => attributes['url.path'] === '/api/health')).toEqual([]);
  });

  test('that is sent again has a span for each attempt', async () => {
    resets = 2;
    const { code, server, clients } = await traced('/api/v1/shop/x', { clients: 3 });
    expect([code, server.failed]).toEqual([200, false]);
    const attempts = clients.map(({ failed, attributes }) => [
      attributes['http.request.resend_count'],
      failed,
      attributes['error.type'],
    ]);
    expect(attempts.sort(([a], [b]) => Number(a ?? 0) - Number(b ?? 0))).toEqual([
      [undefined, true, 'UPSTREAM_UNREACHABLE'],
      [1, true, 'UPSTREAM_UNREACHABLE'],
      [2, false, undefined],
    ]);
    const parentIds = shop.requests.slice(-3).map(({ headers }) => String(headers['traceparent']).split('-')[2]);
    expect(new Set(parentIds)).toEqual(new Set(clients.map(({ spanId }) => spanId)));
  });

  test('that the service does not answer has failed, and so has one of which half an answer comes', async () => {
    resets = 1;
    const lost = await traced('/api/v1/shop/x', { clients: 1, method: 'POST' });
    expect(lost).toMatchObject({ code: 502, server: { failed: true }, clients: [{ failed: true }] });
    expect(lost.server.attributes).toMatchObject({
      'http.response.status_code': 502,
      'error.type': 'UPSTREAM_UNREACHABLE',
    });
    const half = await traced('/api/v1/shop/half', { clients: 1 });
    expect(half).toMatchObject({ server: { failed: true }, clients: [{ failed: true }] });
  });
});

test('a request to the registry goes on there as a part of the same trace', async () => {
  const traceId = 'f'.repeat(32);
  await call('/api/v1/registry/services/shop', { headers: { traceparent: `00-${traceId}-${SPAN}-01` } });
  const spans = await collector.trace(traceId, (found) => found.length > 2);
  const client = spans.find(({ kind }) => kind === 'client');
  expect(spans.find(({ resource }) => resource['service.name'] === 'rollcall-registry')).toMatchObject({
    kind: 'server',
    name: 'GET /api/v1/services/:service_name',
    parentId: client?.spanId,
    attributes: { 'http.response.status_code': 200, 'url.path': '/api/v1/services/shop' },
  });
});

test('a call of gRPC is a span, and the attempt at the service one below it', async () => {
  await using backend = await startGrpcBackend();
  await registry.call('POST', '/services/register', {
    service_name: 'rollcall.test',
    service_url: `http://127.0.0.1:${backend.port}`,
    capabilities: ['grpc'],
  });
  using client = createEchoClient(grpcPort, { token });
  await vi.waitFor(async () => expect((await client.unary(Buffer.from('x'))).status.code).toBe(status.OK), {
    timeout: 30_000,
  });
  const traceparent = (traceId: string) => ({ traceparent: `00-${traceId}-${SPAN}-01` });
  const [fine, bad] = ['b'.repeat(32), 'c'.repeat(32)];
  const { head } = await client.unary(Buffer.from('hello'), { ...traceparent(fine), tracestate: 'vendor=1' });
  const made = split(await collector.trace(fine, (spans) => spans.length > 1));
  expect(made.server).toMatchObject({ name: 'rollcall.test.v1.Echo/Unary', parentId: SPAN, failed: false });
  expect(made.server.attributes).toMatchObject({
    'rpc.system.name': 'grpc',
    'rpc.method': 'rollcall.test.v1.Echo/Unary',
    'rpc.response.status_code': 'OK',
    'rollcall.client': 'tests',
    'rollcall.service': 'rollcall.test',
    'client.address': '127.0.0.1',
  });
  expect(made.clients[0]?.attributes).toMatchObject({ 'server.address': '127.0.0.1', 'server.port': backend.port });
  expect(head?.get('h-traceparent')).toEqual([`00-${fine}-${made.clients[0]?.spanId}-01`]);
  expect(head?.get('h-tracestate')).toEqual(['vendor=1']);
  await client.unary(Buffer.from('x'), { ...traceparent(bad), fail: String(status.UNAVAILABLE) });
  const failed = split(await collector.trace(bad, (spans) => spans.length > 1));
  expect([failed.server, ...failed.clients].map((span) => [span.failed, span.attributes['error.type']])).toEqual([
    [true, 'UNAVAILABLE'],
    [true, 'UNAVAILABLE'],
  ]);
});

test('an upgrade is a span that ends when the connection begins', async () => {
  const upgrade = async (traceId: string, headers: Record<string, string>) => {
    const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/api/ws?token=hunter2`, {
      headers: { traceparent: `00-${traceId}-${SPAN}-01`, ...headers },
    });
    socket.on('error', () => undefined);
    await Promise.race([once(socket, 'open'), once(socket, 'unexpected-response')]);
    const { server } = split(await collector.trace(traceId, (spans) => spans.length > 0));
    socket.terminate();
    return server;
  };
  const accepted = await upgrade('d'.repeat(32), { authorization: `Bearer ${token}` });
  expect(accepted).toMatchObject({ name: 'GET /api/ws', failed: false, parentId: SPAN });
  expect(accepted.attributes).toMatchObject({ 'http.response.status_code': 101, 'rollcall.client': 'tests' });
  const refused = await upgrade('e'.repeat(32), {});
  expect(refused.attributes).toMatchObject({ 'http.response.status_code': 401, 'url.path': '/api/ws' });
});

test('an upgrade of a service is a span, below which the service begins its part', async () => {
  const traceId = '9'.repeat(32);
  const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/api/v1/shop/live?token=hunter2`, {
    headers: { traceparent: `00-${traceId}-${SPAN}-01`, authorization: `Bearer ${token}` },
  });
  socket.on('error', () => undefined);
  // It has none, and answers as a request.
  await once(socket, 'unexpected-response');
  socket.terminate();
  const { server } = split(await collector.trace(traceId, (spans) => spans.length > 0));
  expect(server).toMatchObject({ name: 'GET /api/v1/{service}', parentId: SPAN });
  expect(server.attributes).toMatchObject({ 'rollcall.client': 'tests', 'url.path': '/api/v1/shop/live' });
  expect(shop.requests.at(-1)?.headers['traceparent']).toBe(`00-${traceId}-${server.spanId}-01`);
});

describe('a gateway of its own', () => {
  test('that samples nothing exports nothing, and says so to services, whatever the caller records', async () => {
    await using receiver = await startOtlpReceiver();
    await using quiet = await start({
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${receiver.url}/v1/traces`,
      OTEL_TRACES_SAMPLER: 'traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0',
      ...EXPORT_AT_ONCE,
    });
    await isReachable(quiet);
    await call('/api/v1/shop/x', { at: quiet, headers: { traceparent: `00-${TRACE}-${SPAN}-01` } });
    expect(shop.requests.at(-1)?.headers['traceparent']).toMatch(new RegExp(`^00-${TRACE}-[0-9a-f]{16}-00$`));
    await stopInTime(quiet);
    expect(receiver.requests).toEqual([]);
  });

  test('sends what it has left when it is stopped', async () => {
    await using receiver = await startOtlpReceiver();
    await using patient = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_BSP_SCHEDULE_DELAY: '60000' });
    await isReachable(patient);
    await call('/api/v1/shop/last', { at: patient });
    expect(receiver.spans).toEqual([]);
    await stopInTime(patient);
    const paths = receiver.spans.map(({ attributes }) => attributes['url.path']);
    expect(paths).toContain('/api/v1/shop/last');
  });

  test.each<[string, OtlpReceiver['mode'] | 'unreachable']>([
    ['never answers', 'hang'],
    ['fails', 'fail'],
    ['is not there', 'unreachable'],
  ])('serves while its collector %s, says so once, and stops in time', async (_, mode) => {
    await using receiver = await startOtlpReceiver();
    if (mode === 'unreachable') await receiver[Symbol.asyncDispose]();
    else receiver.mode = mode;
    await using lonely = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
      OTEL_EXPORTER_OTLP_TIMEOUT: '500',
      OTEL_BSP_MAX_QUEUE_SIZE: '16',
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '8',
      ...EXPORT_AT_ONCE,
    });
    await isReachable(lonely);
    const codes = await Promise.all(Array.from({ length: 200 }, () => call('/api/v1/shop/x', { at: lonely })));
    expect(new Set(codes)).toEqual(new Set([200]));
    const losses = async () =>
      (await logOf(lonely)).split('\n').filter((line) => line.includes('spans were not exported'));
    await vi.waitFor(async () => expect(await losses()).toHaveLength(1), { timeout: 30_000 });
    await call('/api/v1/shop/x', { at: lonely });
    await stopInTime(lonely);
    const reported = (await losses()).map((line) => JSON.parse(line) as { level: string; reason: string });
    expect(reported.length).toBeLessThanOrEqual(2);
    expect(reported[0]).toMatchObject({ level: 'warn', reason: expect.any(String) });
  });

  /** Tells on its standard error of every file of the SDK that the process loads. */
  const TELL_LOADED = `--import=data:text/javascript,${encodeURIComponent(
    `import { registerHooks } from 'node:module';
     registerHooks({ load(url, context, next) {
       if (/@opentelemetry.(?!api.)/.test(url)) process.stderr.write('LOADED ' + url + String.fromCharCode(10));
       return next(url, context);
     } });`,
  )}`;

  test('without an endpoint loads nothing of the SDK, and passes traces on as they are', async () => {
    await using off = await start({ NODE_OPTIONS: TELL_LOADED, OTEL_TRACES_SAMPLER: 'always_on' });
    await using on = await start({ NODE_OPTIONS: TELL_LOADED, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    await isReachable(off);
    const traceparent = `00-${TRACE}-${SPAN}-01`;
    await call('/api/v1/shop/x', { at: off, headers: { traceparent, tracestate: 'vendor=1' } });
    expect(shop.requests.at(-1)?.headers).toMatchObject({ traceparent, tracestate: 'vendor=1' });
    expect(await logOf(on)).toContain('LOADED');
    expect(await accessLineOf(off, TRACE)).toMatchObject({ trace_id: TRACE });
    expect(await logOf(off)).not.toContain('LOADED');
  });

  test('with an endpoint that is none does not start, and says why', async () => {
    const faulty = await startReplica('services/gateway/src/main.ts', {
      logDirectory: inject('temporaryDirectory'),
      access: inject('podEnvironment'),
      namespace: namespace.name,
      settings: { ROLLCALL_REGISTRY_URLS: registry.url, OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:hunter2' },
    });
    expect(await faulty.process.exited).toMatchObject({ code: 1 });
    const log = await logOf(faulty);
    expect(log).toContain('OTEL_EXPORTER_OTLP_ENDPOINT must be an absolute http or https URL');
    expect(log).not.toContain('hunter2');
  });
});
