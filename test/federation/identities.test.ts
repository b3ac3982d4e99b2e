import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { SubgraphSource } from '@rollcall/federation/testing/subgraph.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { createGatewayKeys } from '@rollcall/platform/http/gateway-keys.ts';
import { createIdentityReader } from '@rollcall/platform/http/identity.ts';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createClient, startBackend, startGateway, tokenOf } from '../gateway/gateway.ts';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { asClient, type Federation, startFederation } from './federation-service.ts';
import { products } from './shop.ts';
import { startSubgraph } from './subgraph-server.ts';

const WAIT = { timeout: 60_000 };
const QUERY = '{ product me }';
const ALL = { data: { product: 'table', me: 'Anna' } };
/** Registered. */
const members: SubgraphSource = { sdl: 'type Query { me: String }', resolvers: { Query: { me: () => 'Anna' } } };
const stack = new AsyncDisposableStack();
let namespace: TestNamespace;
let registry: RunningService;
let gateway: RunningService;
let client: Readonly<Record<string, string>>;
let token: string;

beforeAll(async () => {
  namespace = await createNamespace('identities');
  const { url: databaseUrl } = stack.use(await createDatabase());
  registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl }));
  gateway = stack.use(await startGateway({ namespace, registry: registry.url }));
  client = await asClient(await createClient(namespace, { id: 'federation', scopes: ['identities:exchange'] }));
  const anna = await createClient(namespace, { id: 'anna', scopes: ['schemas:write', 'users:read'] });
  token = await tokenOf(gateway, anna);
});

afterAll(() => stack.disposeAsync());

interface ShopOptions {
  /** The gateway that federation knows. */
  readonly by?: RunningService;
  readonly isClient?: boolean;
}

/** Members are registered; of products somebody has told. Both are in the graph. */
async function startShop({ by = gateway, isClient = true }: ShopOptions = {}) {
  const federation = await startFederation({
    ROLLCALL_GATEWAY_KEYS_URL: keysUrlOf(by),
    ROLLCALL_REGISTRY_URLS: registry.url,
    ROLLCALL_SERVICE_URL: 'http://127.0.0.1:3002',
    ...(isClient ? client : {}),
  });
  const servers = { members: await startSubgraph(members), products: await startSubgraph(products) };
  await registry.call('POST', '/services/register', {
    service_name: 'members',
    service_url: servers.members.base,
    capabilities: ['graphql'],
  });
  // The next test's federation must not find it.
  onTestFinished(() => registry.call('DELETE', '/services/members').then(() => undefined));
  await introspect(federation, { serviceUrl: servers.products.url, name: 'products' });
  await expect.poll(() => federation.query(QUERY), WAIT).toEqual(ALL);
  return { federation, servers };
}

const keysUrlOf = ({ url }: RunningService) => `${url}/.well-known/jwks.json`;

async function introspect({ callerOf }: Federation, body: object): Promise<void> {
  const anybody = await callerOf(undefined);
  const answer = await anybody('POST', '/schemas/introspect', { body, headers: asAnna() });
  expect(answer.status).toBe(200);
}

const asAnna = () => ({ authorization: `Bearer ${token}` });

/** What says who calls. */
const SHOWN = ['authorization', 'x-rollcall-identity', 'x-rollcall-subject', 'x-rollcall-scopes'];

async function ask({ callerOf }: Federation, headers: Readonly<Record<string, string>> = asAnna()) {
  const anybody = await callerOf(undefined);
  return (await anybody('POST', '/graphql', { body: { query: QUERY }, headers })).body;
}

/** The gateway may not have heard of the client yet, or of the service. */
const askUntilAnswered = (federation: Federation) => expect.poll(() => ask(federation), WAIT).toEqual(ALL);

test('a registered service is told who calls by an identity of its own, and others are not', async () => {
  const { federation, servers } = await startShop();
  await askUntilAnswered(federation);
  const [asked, told] = [servers.members.asked.at(-1), servers.products.asked.at(-1)];
  expect(asked).toMatchObject({
    'x-rollcall-subject': 'anna',
    'x-rollcall-tier': 'premium',
    'x-rollcall-scopes': 'schemas:write users:read',
  });
  const keys = createGatewayKeys(new URL(keysUrlOf(gateway)), systemClock);
  const reader = createIdentityReader({ issuer: 'rollcall', keys, clock: systemClock, service: 'members' });
  expect(await reader.read({ headers: asked ?? {} })).toMatchObject({ subject: 'anna' });
  expect(asked).not.toHaveProperty('authorization');
  for (const name of SHOWN) expect(told).not.toHaveProperty(name);
});

test('for a caller who shows nothing no identity is made', async () => {
  const { federation, servers } = await startShop();
  expect(await ask(federation, {})).toEqual(ALL);
  for (const name of SHOWN) expect(servers.members.asked.at(-1)).not.toHaveProperty(name);
});

test('a service is told nothing at another URL than it is registered with', async () => {
  const { federation } = await startShop();
  await askUntilAnswered(federation);
  const impostor = await startSubgraph(members);
  await introspect(federation, { serviceUrl: impostor.url, name: 'members' });
  expect(await ask(federation)).toEqual(ALL);
  expect(impostor.asked.length).toBeGreaterThan(0);
  for (const asked of impostor.asked) for (const name of SHOWN) expect(asked).not.toHaveProperty(name);
});

/** A service that says who calls it. */
async function tellSubject(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const data = (await text(request)).includes('_service')
    ? { _service: { sdl: 'type Query { own: String }' } }
    : { own: String(request.headers['x-rollcall-subject']) };
  response.setHeader('content-type', 'application/json').end(JSON.stringify({ data }));
}

const answerTo = (id: string) => ({ data: { own: id, me: 'Anna' } });

test('of many callers at once each gets what is its own', async () => {
  const { federation } = await startShop();
  const own = await startBackend((request, response) => void tellSubject(request, response));
  onTestFinished(() => own[Symbol.asyncDispose]());
  await registry.call('POST', '/services/register', {
    service_name: 'own',
    service_url: own.url,
    capabilities: ['graphql'],
  });
  onTestFinished(() => registry.call('DELETE', '/services/own').then(() => undefined));
  const ids = Array.from({ length: 10 }, (_, index) => `caller-${index}`);
  const callers = await Promise.all(
    ids.map(async (id) => ({ id, shown: await tokenOf(gateway, await createClient(namespace, { id })) })),
  );
  const anybody = await federation.callerOf(undefined);
  const askAs = async (shown: string) => {
    const headers = { authorization: `Bearer ${shown}` };
    return (await anybody('POST', '/graphql', { body: { query: '{ own me }' }, headers })).body;
  };
  for (const { id, shown } of callers) await expect.poll(() => askAs(shown), WAIT).toEqual(answerTo(id));
  for (let round = 0; round < 10; round += 1)
    await Promise.all(
      [...callers, ...callers, ...callers, ...callers].map(async ({ id, shown }) =>
        expect(await askAs(shown)).toEqual(answerTo(id)),
      ),
    );
});

test('without a client no service is told who calls', async () => {
  const { federation, servers } = await startShop({ isClient: false });
  expect(await ask(federation)).toEqual(ALL);
  for (const name of SHOWN) expect(servers.members.asked.at(-1)).not.toHaveProperty(name);
});

test('while the gateway is away, what needs no identity goes on', async () => {
  const other = await startGateway({ namespace, registry: registry.url });
  onTestFinished(() => other[Symbol.asyncDispose]());
  const { federation } = await startShop({ by: other });
  await other[Symbol.asyncDispose]();
  expect(await ask(federation)).toEqual({
    data: { product: 'table', me: null },
    errors: [
      {
        message: 'The gateway could not tell the service who calls; try again',
        path: ['me'],
        extensions: { code: 'SUBGRAPH_UNAVAILABLE', service: 'members' },
      },
    ],
  });
  expect(await ask(federation, {})).toEqual(ALL);
});
