import { once } from 'node:events';
import { addressRules } from '@rollcall/platform/outbound/address-rules.ts';
import { createGuardedAgent, guardedLookup } from '@rollcall/platform/outbound/guarded-agent.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { expect, onTestFinished, test } from 'vitest';
import { WebSocketServer } from 'ws';
import { createOpenSource } from './open-source.ts';
import { openByWebSocket } from './websocket-source.ts';

const CALL = { subgraph: 'clock', query: 'subscription{ticks}', variables: {}, kind: 'subscription' } as const;
const LEFT = new Error('Nobody listens any more');

/** A service that takes every connection, and says nothing. */
async function startService() {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  let connections = 0;
  server.on('connection', () => (connections += 1));
  onTestFinished(() => {
    for (const client of server.clients) client.terminate();
    server.close();
  });
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('It has no port');
  return { url: `http://127.0.0.1:${address.port}/graphql`, connections: () => connections };
}

test('who leaves while the gateway is asked who calls opens nothing at the service', async () => {
  const { url, connections } = await startService();
  const dispatcher = createGuardedAgent({ mayConnect: addressRules.any, connectTimeoutMs: 10_000, keepAlive: false });
  onTestFinished(() => dispatcher.close());
  const asked = Promise.withResolvers<void>();
  const identity = Promise.withResolvers<Record<string, string>>();
  const open = createOpenSource({
    dispatcher,
    urlsOf: () => [url],
    identityFor() {
      asked.resolve();
      return identity.promise;
    },
    headersFor: (_service, carried) => carried,
    limitBytes: 1_000_000,
    mayConnect: addressRules.any,
    show: (_subgraph, answer) => answer,
    log: createLogger('test', 'silent'),
  });
  const scopes = new Set<string>();
  const caller = { subject: 'anna', tier: 'standard', scopes, expiresAtMs: 0, token: 'a', kind: 'jwt' } as const;
  const listening = new AbortController();
  const events = open(CALL, { headers: {}, caller }, listening.signal)[Symbol.asyncIterator]();
  const first = events.next();
  await asked.promise;
  listening.abort(LEFT);
  identity.resolve({});
  await expect(first).rejects.toBe(LEFT);
  expect(connections()).toBe(0);
});

test('nothing is opened for a signal that is aborted already', async () => {
  const { url, connections } = await startService();
  const signal = AbortSignal.abort(LEFT);
  const options = {
    url: new URL(url),
    headers: {},
    lookup: guardedLookup(addressRules.any),
    limitBytes: 1_000_000,
    signal,
  };
  await expect(openByWebSocket(CALL, options)).rejects.toBe(LEFT);
  expect(connections()).toBe(0);
});
