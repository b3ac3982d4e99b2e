import { readFile } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { gzipSync } from 'node:zlib';
import { waitUntil } from '@rollcall/local/wait.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { type Backend, startBackend, startGateway } from './gateway.ts';

/** What a service got. */
interface Received {
  readonly service: string;
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

const NOTIFICATIONS = ['payment', 'communication'] as const;
const received: Received[] = [];
const stack = new AsyncDisposableStack();
let gateway: RunningService;

beforeAll(async () => {
  const namespace = await createNamespace('open-routes');
  const database = stack.use(await createDatabase());
  const registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl: database.url }));
  for (const service of NOTIFICATIONS) {
    const { url } = stack.use(await startKeeper(service));
    await registry.call('POST', '/services/register', { service_name: service, service_url: url });
  }
  // As behind an Ingress: the tests say whose each request is.
  const settings = { ROLLCALL_TRUSTED_PROXIES: '127.0.0.1' };
  gateway = stack.use(await startGateway({ namespace, registry: registry.url, settings }));
  for (const path of ['/pay/known', '/unsubscribe/known']) {
    const isKnown = async () => (await call(path, { method: 'GET' })).status === 200;
    await waitUntil('the gateway has heard of the services', isKnown, { timeoutMs: 30_000 });
  }
});

afterAll(() => stack.disposeAsync());

/** A service that keeps what it gets, to the byte. */
function startKeeper(service: string): Promise<Backend> {
  return startBackend((incoming, response) => {
    const { method = '', url = '', headers } = incoming;
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      received.push({ service, method, url, headers, body: Buffer.concat(chunks) });
      response.setHeader('content-security-policy', "default-src 'none'");
      response.end(service);
    });
  });
}

interface CallOptions {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';
  readonly headers?: Record<string, string>;
  readonly body?: Uint8Array<ArrayBuffer> | ReadableStream | null;
}

async function call(path: string, { method, headers = {}, body = null }: CallOptions) {
  const answer = await fetch(`${gateway.url}${path}`, { method, headers, body, duplex: 'half' });
  return { status: answer.status, headers: Object.fromEntries(answer.headers), text: await answer.text() };
}

/** In an order and a spelling of its own, with bytes that are no text in UTF-8, and a line break that is signed. */
const RAW = Buffer.concat([
  Buffer.from('z=1&a=%7e+%2A&a=&amount_gross=149.50&name=Jos'),
  Buffer.from([0xe9, 0x00, 0xff]),
  Buffer.from('&signature=0\r\n'),
]);

const SIGNATURES = {
  'webhook-id': 'msg_2abc',
  'webhook-timestamp': '1795168800',
  'webhook-signature': 'v1,AAEC v1,AwQF',
  'stripe-signature': 't=1795168800,v1=3dd5',
  'x-twilio-signature': 'lKKAwCxJQ4BQ28+cEDXLnOiUzeg=',
  'x-twilio-email-event-webhook-signature': 'MEUCIQ==',
  'x-twilio-email-event-webhook-timestamp': '1795168800',
};

const inPieces = (): ReadableStream => ReadableStream.from([...RAW].map((byte) => Buffer.of(byte)));

describe.each(NOTIFICATIONS)('a notification for %s', (service) => {
  const path = `/api/v1/${service}/notifications/provider`;

  test('arrives without a token, with its bytes, type and signatures, and says nothing of a caller', async () => {
    const headers = { ...SIGNATURES, 'content-type': 'application/x-www-form-urlencoded; charset=WINDOWS-1252' };
    const claims = { 'x-rollcall-subject': 'admin', 'x-rollcall-identity': 'eyJ' };
    const sent = { method: 'POST', headers: { ...headers, ...claims }, body: RAW } as const;
    expect(await call(`${path}?tenant=a%2Fb&x=`, sent)).toMatchObject({ status: 200, text: service });
    const got = received.at(-1);
    expect(got).toMatchObject({ service, method: 'POST', url: '/api/v1/notifications/provider?tenant=a%2Fb&x=' });
    expect(got?.headers).toMatchObject({ ...headers, 'x-rollcall-service': service });
    expect(got?.body.equals(RAW)).toBe(true);
    for (const name of Object.keys(claims)) expect(got?.headers).not.toHaveProperty(name);
  });

  test('arrives with its bytes, also in pieces or compressed', async () => {
    expect(await call(path, { method: 'POST', body: inPieces() })).toMatchObject({ status: 200 });
    expect(received.at(-1)?.body.equals(RAW)).toBe(true);
    const packed = gzipSync(RAW);
    const headers = { 'content-encoding': 'gzip', 'content-type': 'application/json' };
    expect(await call(path, { method: 'POST', headers, body: packed })).toMatchObject({ status: 200 });
    expect(received.at(-1)?.headers).toMatchObject(headers);
    expect(received.at(-1)?.body.equals(packed)).toBe(true);
  });

  test('comes by POST alone', async () => {
    for (const method of ['GET', 'PUT', 'DELETE'] as const) {
      expect(await call(path, { method })).toMatchObject({ status: 405, headers: { allow: 'POST' } });
    }
  });
});

test.each([
  ['/pay/tok_1/confirm?ref=7', 'payment'],
  ['/unsubscribe/tok_2?list=news', 'communication'],
])(
  'the page %s is that of %s, without a token and with the headers that the service gave it',
  async (path, service) => {
    const policy = { 'content-security-policy': "default-src 'none'" };
    expect(await call(path, { method: 'GET' })).toMatchObject({ status: 200, text: service, headers: policy });
    expect(received.at(-1)).toMatchObject({ service, method: 'GET', url: path });
    expect(await call(path, { method: 'HEAD' })).toMatchObject({ status: 200, text: '', headers: policy });
    const body = Buffer.from('List-Unsubscribe=One-Click');
    expect(await call(path, { method: 'POST', body })).toMatchObject({ status: 200, text: service });
    expect(received.at(-1)).toMatchObject({ service, method: 'POST', url: path, body });
    expect(await call(path, { method: 'DELETE' })).toMatchObject({
      status: 405,
      headers: { allow: 'GET, HEAD, POST' },
    });
  },
);

test.each(['/api/v1/payment/payments', '/api/v1/payment/notificationsX', '/api/v1/communication/emails', '/payroll/7'])(
  '%s still needs a token',
  async (path) => {
    const before = received.length;
    expect(await call(path, { method: 'POST', body: RAW })).toMatchObject({ status: 401 });
    expect(received.length).toBe(before);
  },
);

test('a path that reads like an open one, and is not, is refused', async () => {
  for (const path of ['/Pay/tok', '/pay;x/tok', '/pay//tok', '/pay%2Ftok']) {
    expect({ path, ...(await call(path, { method: 'GET' })) }).toMatchObject({ path, status: 400 });
  }
});

const from = (address: string): Record<string, string> => ({ 'x-forwarded-for': address });

test('the service learns the address as proxies that are trusted know it, whatever the caller says', async () => {
  const headers = { ...from('10.0.0.1, 203.0.113.9'), 'x-real-ip': '10.0.0.2', forwarded: 'for=10.0.0.3' };
  await call('/pay/tok', { method: 'GET', headers });
  expect(received.at(-1)?.headers).toMatchObject({
    'x-real-ip': '203.0.113.9',
    'x-forwarded-for': '10.0.0.1, 203.0.113.9, 127.0.0.1',
    forwarded: expect.stringMatching(/^for=203\.0\.113\.9;/),
  });
});

test('each has a limit of its own for an address', async () => {
  const limits = [
    ['/pay/tok', '600'],
    ['/unsubscribe/tok', '12000'],
    ['/api/v1/payment/notifications/a', '12000'],
    ['/api/v1/communication/notifications/a', '12000'],
  ] as const;
  for (const [path, limit] of limits) {
    const { headers } = await call(path, { method: 'POST', headers: from('203.0.113.20') });
    const remaining = String(Number(limit) - 1);
    expect({ path, ...headers }).toMatchObject({
      path,
      'x-ratelimit-limit': limit,
      'x-ratelimit-remaining': remaining,
    });
  }
});

test('who has used up a limit is refused, and others at other addresses are not', async () => {
  const ask = (address: string) => call('/pay/tok', { method: 'GET', headers: from(address) });
  const statuses = [];
  for (let count = 0; count < 601; count += 1) statuses.push((await ask('203.0.113.30')).status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(600);
  expect(statuses.at(-1)).toBe(429);
  expect(await ask('203.0.113.31')).toMatchObject({ status: 200 });
  // What else the address asks for is counted by itself.
  const notification = { method: 'POST', headers: from('203.0.113.30') } as const;
  expect(await call('/api/v1/payment/notifications/a', notification)).toMatchObject({ status: 200 });
});

test('no token of a link, and no secret path of a provider, is in the log', async () => {
  const paths = ['/pay/hunter2-a', '/Unsubscribe/hunter2-b', '/api/v1/communication/notifications/bulksms/hunter2-c'];
  for (const path of paths) await call(path, { method: 'POST' });
  const shown = ['"/pay/*"', '"/unsubscribe/*"', '"/api/v1/communication/notifications/*"'];
  for (const path of shown) await expect.poll(logged).toContain(path);
  expect(await logged()).not.toContain('hunter2');
});

function logged(): Promise<string> {
  return readFile(gateway.logFile, 'utf8');
}
