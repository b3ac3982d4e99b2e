import { once } from 'node:events';
import { createServer, IncomingMessage } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { duplexPair } from 'node:stream';
import { systemClock } from '@rollcall/platform/clock.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { Registry } from 'prom-client';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocket } from 'ws';
import { parseTrustedProxies } from '../../admission/client-address.ts';
import { testEndpoints } from '../../upstream/discovery/testing/test-endpoints.ts';
import { limits } from './limits.ts';
import { createPassingWebSockets } from './passing-websockets.ts';

/** The door of one service, for a subject whose connections wait for their identity there. */
function door() {
  let asked = 0;
  const never = () => {
    asked += 1;
    return new Promise<never>(() => undefined);
  };
  const expiresAtMs = Number.POSITIVE_INFINITY;
  const caller = { subject: 'anna', tier: 'standard', scopes: new Set(['*']), expiresAtMs } as const;
  const target = { service: 'chat', endpoints: testEndpoints().endpoints, grpcEndpoints: undefined };
  const find = () => target;
  const actor = { name: 'none', start: async () => undefined, stop: async () => undefined };
  const passing = createPassingWebSockets({
    lookup: () => undefined,
    timeoutMs: 60_000,
    authenticator: { authenticate: () => caller, stillHolds: () => true },
    requestLimits: { check: () => ({ headers: {}, refusal: undefined }) },
    route: () => ({ service: 'chat', path: '/', rule: undefined }),
    targets: { actor, find, findRegistered: find, isComplete: () => true },
    identity: { headersFor: never, lastingHeadersFor: never, actingFor: never },
    trustedProxies: parseTrustedProxies([]),
    accessLog: undefined,
    tracing: undefined,
    clock: systemClock,
    log: createLogger('test', 'silent'),
    metrics: new Registry(),
  });
  return { passing, asked: () => asked };
}

/** A client with a token. @returns its end of the connection. */
function ask({ passing }: ReturnType<typeof door>) {
  const request = new IncomingMessage(new Socket());
  Object.assign(request, { method: 'GET', url: '/api/v1/chat' });
  request.headers = { authorization: 'Bearer a', upgrade: 'websocket', connection: 'upgrade' };
  const [client, server] = duplexPair();
  passing.handleUpgrade(request, server, Buffer.alloc(0));
  return { client, server };
}

async function answerTo({ client }: ReturnType<typeof ask>): Promise<string> {
  const [head] = await once(client, 'data');
  return String(head);
}

test('connections that are still being opened count for their subject, until they are over', async () => {
  const all = door();
  const server = createServer().on('upgrade', (...upgrade) => all.passing.handleUpgrade(...upgrade));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const late = new WebSocket(`ws://127.0.0.1:${port}/api/v1/chat`, 'graphql-transport-ws');
  onTestFinished(() => late.terminate());
  await once(late, 'open');
  late.send(JSON.stringify({ type: 'connection_init', payload: { authorization: 'Bearer a' } }));
  await expect.poll(all.asked).toBe(1);

  const most = limits.connectionsPerSubject;
  const others = Array.from({ length: most - 1 }, () => ask(all));
  await expect.poll(all.asked).toBe(most);
  expect(await answerTo(ask(all))).toMatch(/^HTTP\/1\.1 429 /);

  const closed = others.map((other) => once(other.server, 'close'));
  for (const { server: socket } of others.slice(1)) socket.destroy();
  await Promise.all(closed.slice(1));
  late.terminate();
  // The place of the one that showed its token late comes back, too.
  for (let count = 0; count < most - 2; count += 1) ask(all);
  await expect.poll(all.asked).toBe(2 * most - 2);
  await expect
    .poll(() => {
      ask(all);
      return all.asked();
    })
    .toBe(2 * most - 1);
});
