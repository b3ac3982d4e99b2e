import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net';
import type { HealthCheck } from '@rollcall/crds/types.gen.ts';
import { createProber } from '@rollcall/operator/health-checks/prober.ts';
import { addressRules } from '@rollcall/platform/outbound/address-rules.ts';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startBareBackend, startInventoryBackend } from '../gateway/inventory-backend.ts';

const numbers = { intervalSeconds: 5, timeoutSeconds: 1, failureThreshold: 3, successThreshold: 2 };
const http: HealthCheck = { type: 'http', ...numbers };
const tcp: HealthCheck = { type: 'tcp', ...numbers };
const grpc: HealthCheck = { type: 'grpc', ...numbers };

function newProber(...options: Parameters<typeof createProber>) {
  const prober = createProber(...options);
  onTestFinished(() => prober.close());
  return (url: string, check: HealthCheck) => prober.probe({ url, check }, new AbortController().signal);
}

const probe = (url: string, check: HealthCheck) => newProber(addressRules.any)(url, check);

async function serve(listener: RequestListener): Promise<string> {
  const server = createHttpServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return urlOf(server.address());
}

async function listen(onConnection: (socket: Socket) => void): Promise<string> {
  const server = createTcpServer(onConnection).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return urlOf(server.address());
}

function urlOf(address: AddressInfo | string | null): string {
  if (typeof address !== 'object' || address === null) throw new Error('no port');
  return `http://127.0.0.1:${address.port}`;
}

/** Of a port on which nobody listens any more. */
async function closed(): Promise<string> {
  const server = createTcpServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = urlOf(server.address());
  server.close();
  await once(server, 'close');
  return url;
}

describe('over HTTP', () => {
  test.each([
    [200, true],
    [204, true],
    [302, true],
    [404, false],
    [503, false],
  ])('%i passes: %j, whatever comes with it', async (status, passed) => {
    const url = await serve((_request, response) => {
      response.writeHead(status, { location: 'http://169.254.169.254/' }).end('secret');
    });
    expect(await probe(url, http)).toEqual({ passed, message: `it answered ${status}` });
  });

  test.each([
    ['', undefined, '/'],
    ['/base', undefined, '/base'],
    ['/base/', '/health?deep=1', '/base/health?deep=1'],
    ['', '//evil.example/health', '//evil.example/health'],
    ['/base', '/../@evil.example', '/@evil.example'],
  ])('%j and %j: %j is asked for, and nobody else', async (base, path, asked) => {
    const seen: unknown[] = [];
    const url = await serve((request, response) => {
      seen.push([request.method, request.url]);
      response.end();
    });
    const check = path === undefined ? http : { ...http, path };
    expect(await probe(`${url}${base}`, check)).toMatchObject({ passed: true });
    expect(seen).toEqual([['GET', asked]]);
  });

  test('a server that hangs, and one that sends a byte a second, answer too late', async () => {
    const hanging = await listen(() => undefined);
    const dripping = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': '1000' });
      const drip = setInterval(() => response.write('x'), 300);
      response.once('close', () => clearInterval(drip));
    });
    const late = { passed: false, message: 'no answer within 1 s' };
    expect(await Promise.all([probe(hanging, http), probe(dripping, http)])).toEqual([late, late]);
  });

  test('of a body without an end no more than a little is read', async () => {
    const chunk = Buffer.alloc(64 * 1024);
    let sent = 0;
    const url = await serve((_request, response) => {
      const more = () => {
        while (!response.destroyed && response.write(chunk)) sent += chunk.length;
        sent += chunk.length;
      };
      response.on('drain', more);
      more();
    });
    expect(await probe(url, http)).toEqual({ passed: true, message: 'it answered 200' });
    expect(sent).toBeLessThan(16 * 1024 * 1024);
  });

  test('what is no HTTP fails, and is not repeated', async () => {
    const url = await listen((socket) => void socket.end('secret\u001b[31m\r\n\r\n'));
    const outcome = await probe(url, http);
    expect(outcome).toMatchObject({ passed: false, message: expect.not.stringContaining('secret') });
  });
});

test('over TCP a connection is enough', async () => {
  const url = await listen(() => undefined);
  expect(await probe(url, tcp)).toEqual({ passed: true, message: 'it accepted a connection' });
  expect(await probe(await closed(), tcp)).toMatchObject({
    passed: false,
    message: expect.stringContaining('ECONNREFUSED'),
  });
});

test('over gRPC the standard health service is asked', async () => {
  await using backend = await startInventoryBackend();
  await using bare = await startBareBackend();
  const serving = { passed: true, message: 'it answered SERVING' };
  expect(await probe(backend.url, grpc)).toEqual(serving);
  expect(await probe(backend.url, { ...grpc, service: 'acme.inventory.v1.Inventory' })).toEqual(serving);
  const unknown = await probe(backend.url, { ...grpc, service: 'acme.Other' });
  expect(unknown).toEqual({ passed: false, message: 'it answered NOT_FOUND' });
  backend.health.set('NOT_SERVING');
  const notServing = { passed: false, message: 'it answered that it is not SERVING' };
  expect(await probe(backend.url, grpc)).toEqual(notServing);
  expect(await probe(bare.url, grpc)).toEqual({ passed: false, message: 'it answered UNIMPLEMENTED' });
  expect(await probe(await closed(), grpc)).toEqual({ passed: false, message: 'it answered UNAVAILABLE' });
  const hanging = await listen(() => undefined);
  expect(await probe(hanging, grpc)).toEqual({ passed: false, message: 'no answer within 1 s' });
});

describe.each([http, tcp, grpc])('the address rule, asked by $type', (check) => {
  test.each([
    ['http://169.254.169.254', '169.254.169.254'],
    ['http://[::1]:8080', '::1'],
    ['http://metadata.example', 'metadata.example (169.254.169.254)'],
  ])('refuses %s', async (url, where) => {
    const metadata = [{ address: '169.254.169.254', family: 4 }];
    const guarded = newProber(addressRules.cluster, async () => metadata);
    const outcome = await guarded(url, check);
    expect(outcome).toEqual({ passed: false, message: `Connections to ${where} are not allowed` });
  });

  test('lets a name through that leads where it may', async () => {
    await using backend = await startInventoryBackend();
    const { port } = new URL(backend.url);
    const named = newProber(addressRules.any, async () => [{ address: '127.0.0.1', family: 4 }]);
    const outcome = await named(`http://shop.example:${port}`, check);
    // A server of gRPC does not speak HTTP/1.1.
    expect(outcome?.passed).toBe(check.type !== 'http');
  });
});

test('a name server that does not answer says nothing of the service, one that knows no address does', async () => {
  const silent = newProber(addressRules.any, () => new Promise(() => undefined));
  expect(await silent('http://shop.example', http)).toBeUndefined();
  const unknown = newProber(addressRules.any, async () => {
    throw Object.assign(new Error('getaddrinfo ENOTFOUND shop.example'), { code: 'ENOTFOUND' });
  });
  const outcome = await unknown('http://shop.example', http);
  expect(outcome).toEqual({ passed: false, message: 'getaddrinfo ENOTFOUND shop.example' });
});

test('one that is given up ends at once', async () => {
  const url = await listen(() => undefined);
  const prober = createProber(addressRules.any);
  const stopping = new AbortController();
  const asked = [http, grpc].map((check) => prober.probe({ url, check }, stopping.signal));
  setTimeout(() => stopping.abort(new Error('stopped')), 50);
  for (const outcome of asked) await expect(outcome).rejects.toThrow('stopped');
  await prober.close();
});
