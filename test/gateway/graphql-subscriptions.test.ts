import { federationProcess } from '@rollcall/federation/service.ts';
import { freePorts } from '@rollcall/local/ports.ts';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { asClient } from '../federation/federation-service.ts';
import { graphqlClient, listen } from '../federation/graphql-clients.ts';
import { type LiveSubgraph, startLiveSubgraph } from '../federation/live-subgraph.ts';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import { type RunningService, startService } from '../support/replica.ts';
import { createClient, startGateway, tokenOf } from './gateway.ts';

const WAIT = { timeout: 60_000 };
const QUERY = 'subscription { joined { name } }';
const stack = new AsyncDisposableStack();
let namespace: TestNamespace;
let gateway: RunningService;
let registration: (url: string) => Promise<unknown>;

beforeAll(async () => {
  namespace = await createNamespace('gateway-subscriptions');
  const { url: databaseUrl } = stack.use(await createDatabase());
  const registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl }));
  gateway = stack.use(await startGateway({ namespace, registry: registry.url }));
  const own = await createClient(namespace, { id: 'federation', scopes: ['identities:exchange'] });
  const [port = 0, adminPort = 0] = await freePorts(2);
  stack.use(
    await startService(federationProcess, {
      logDirectory: inject('temporaryDirectory'),
      access: {},
      namespace: namespace.name,
      ports: [port, adminPort],
      settings: {
        ...(await asClient(own)),
        ROLLCALL_DATABASE_URL: stack.use(await createDatabase()).url,
        ROLLCALL_GATEWAY_KEYS_URL: `${gateway.url}/.well-known/jwks.json`,
        ROLLCALL_REGISTRY_URLS: registry.url,
        ROLLCALL_SERVICE_URL: `http://127.0.0.1:${port}`,
      },
    }),
  );
  registration = (url) =>
    registry.call('POST', '/services/register', {
      service_name: 'live',
      service_url: url,
      capabilities: ['graphql'],
    });
}, 120_000);

afterAll(() => stack.disposeAsync());

const listeners = (live: LiveSubgraph, count: number) => vi.waitFor(() => expect(live.listeners()).toBe(count), WAIT);

/** The service of the subscription, once it is in the graph. */
async function startLive(token: string): Promise<LiveSubgraph> {
  const live = await startLiveSubgraph('WebSocket');
  await registration(new URL(live.url).origin);
  await vi.waitFor(async () => {
    const answer = await fetch(`${gateway.url}/api/graphql`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: '{"query":"{ size }"}',
    });
    expect(await answer.json()).toEqual({ data: { size: 3 } });
  }, WAIT);
  return live;
}

test('subscriptions pass the gateway, however a client shows its token, until that holds no more', async () => {
  const token = await tokenOf(gateway, await createClient(namespace, { id: 'anna' }));
  const live = await startLive(token);
  const { url } = gateway;
  const heard = [
    graphqlClient('WebSocket', { url, token, asHeader: true }),
    graphqlClient('WebSocket', { url, token }),
    graphqlClient('events', { url, token }),
  ].map((client) => listen(client, QUERY));
  // By WebSocket they are equal; by events another language is asked for.
  await listeners(live, 2);
  expect(live.asked.at(-1)).toMatchObject({ 'x-rollcall-subject': 'anna', 'x-rollcall-identity': expect.any(String) });
  await vi.waitFor(() => {
    live.joins({ id: '1', name: 'Ada' });
    for (const { answers } of heard) expect(answers[0]).toEqual({ data: { joined: { name: 'Ada' } } });
  }, WAIT);
  await namespace.kubectl(['delete', 'apiclient', 'anna']);
  for (const each of heard.slice(0, 2)) await vi.waitFor(() => expect(each.ended).toMatchObject({ code: 4403 }), WAIT);
  await vi.waitFor(() => expect(heard[2]?.ended).toBeInstanceOf(Error), WAIT);
  await listeners(live, 0);
});

test('a gateway that stops sends its clients elsewhere', async () => {
  const token = await tokenOf(gateway, await createClient(namespace, { id: 'ben' }));
  const live = await startLive(token);
  const heard = listen(graphqlClient('WebSocket', { url: gateway.url, token }), QUERY);
  await listeners(live, 1);
  await gateway[Symbol.asyncDispose]();
  await vi.waitFor(() => expect(heard.ended).toMatchObject({ code: 1001 }), WAIT);
  await listeners(live, 0);
});
