import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Holder } from '@rollcall/gateway/admission/caller.ts';
import { createRestProxy, type Outcome } from '@rollcall/gateway/doors/rest/rest.ts';
import { placeOf } from '@rollcall/gateway/upstream/discovery/endpoint.ts';
import { endpointsBy } from '@rollcall/gateway/upstream/discovery/endpoints.ts';
import { createDispatchers } from '@rollcall/gateway/upstream/dispatchers.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { addressRules } from '@rollcall/platform/outbound/address-rules.ts';
import { defaultBreakerPolicy } from '@rollcall/platform/outbound/breaker.ts';
import { createLookups } from '@rollcall/platform/outbound/lookups.ts';
import { createConcurrencyLimiter } from '@rollcall/platform/queues/concurrency-limiter.ts';
import { afterAll, expect, test } from 'vitest';
import { type Backend, startBackend } from './gateway.ts';

/** Of the token, from the beginning of a request. */
const LIFETIME_MS = 600;
const LENGTH_MS = 8000;

const stack = new AsyncDisposableStack();
afterAll(() => stack.disposeAsync());

/** A piece every 50 ms, for longer than the token lasts. */
function trickle({ url = '' }: IncomingMessage, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': url.slice(1) });
  const timer = setInterval(() => response.write('data: x\n\n'), 50);
  setTimeout(() => response.end('all'), LENGTH_MS).unref();
  response.once('close', () => clearInterval(timer));
}

/** Before the backend; each request has a token that expires while it is answered. */
async function startProxy(backend: Backend): Promise<{ readonly url: string; readonly outcomes: Outcome[] }> {
  const dispatchers = createDispatchers({ connectTimeoutMs: 1000, lookups: createLookups() });
  stack.defer(() => dispatchers.destroy());
  const proxy = createRestProxy({
    dispatchers,
    concurrency: createConcurrencyLimiter({ mostPerKey: 100 }),
    authenticator: { stillHolds: () => true },
    clock: systemClock,
    headersTimeoutMs: 5000,
    bodyTimeoutMs: 5000,
  });
  const endpointsOf = endpointsBy({
    mayConnect: addressRules.any,
    resolve: async () => [],
    breakerPolicy: defaultBreakerPolicy,
    mostUnderWay: 16,
    clock: systemClock,
  });
  const target = {
    service: 'slow',
    grpcEndpoints: undefined,
    endpoints: endpointsOf([placeOf(backend.url)]),
  };
  const outcomes: Outcome[] = [];
  const forward = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const expiresAtMs = Date.now() + LIFETIME_MS;
    const caller = { subject: 'a', tier: 'free', scopes: new Set<string>(), expiresAtMs } as const;
    const holder: Holder = { token: 'a', caller };
    const origin = { clientAddress: '127.0.0.1', forwardedFor: '127.0.0.1', protocol: 'http', host: 'a' } as const;
    outcomes.push(
      await proxy.forward({
        target,
        holder,
        path: request.url ?? '',
        request,
        response,
        forwarded: { ...origin, requestId: '1', service: 'a', identity: [] },
        trace: undefined,
        span: undefined,
        addedHeaders: {},
        timeoutMs: undefined,
        bodyLimit: 1_000_000,
      }),
    );
  };
  const server = createServer((request, response) => void forward(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  stack.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, outcomes };
}

test('events end when the token expires that they were asked for with; what has an end comes to it', async () => {
  const { url, outcomes } = await startProxy(stack.use(await startBackend(trickle)));
  const read = async (type: string): Promise<{ type: string; ms: number; whole: boolean }> => {
    const from = performance.now();
    const text = await (await fetch(`${url}/${type}`)).text().catch(() => '');
    return { type, ms: performance.now() - from, whole: text.endsWith('all') };
  };
  const [events, download] = await Promise.all([read('text/event-stream; charset=utf-8'), read('application/zip')]);
  expect(events.whole).toBe(false);
  expect(events.ms).toBeGreaterThanOrEqual(LIFETIME_MS - 1);
  expect(download.whole).toBe(true);
  expect(outcomes).toMatchObject([
    { type: 'failed', begun: true, failure: { code: 'INVALID_TOKEN', blame: 'caller', retryable: false } },
    { type: 'answered', status: 200 },
  ]);
});
