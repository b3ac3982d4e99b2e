import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { federationProcess } from '@rollcall/federation/service.ts';
import { freePorts } from '@rollcall/local/ports.ts';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { clashing, products, users } from '../federation/shop.ts';
import { startSubgraph } from '../federation/subgraph-server.ts';
import { createClient, startGateway, tokenOf } from '../gateway/gateway.ts';
import { createNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import { type RunningService, startService } from '../support/replica.ts';
import { type RollcallResult, rollcall } from './rollcall-process.ts';

const resources = new AsyncDisposableStack();
const WAIT = { timeout: 60_000 };
let gateway: RunningService;
let token: string;
let readerToken: string;

beforeAll(async () => {
  const namespace = await createNamespace('cli-graph');
  const ofRegistry = resources.use(await createDatabase());
  const registry = resources.use(await startRegistry({ namespace: namespace.name, databaseUrl: ofRegistry.url }));
  gateway = resources.use(await startGateway({ namespace, registry: registry.url }));
  const client = await createClient(namespace, { id: 'ci', scopes: ['schemas:read', 'schemas:write'] });
  token = await tokenOf(gateway, client);
  readerToken = await tokenOf(gateway, await createClient(namespace, { id: 'reader', scopes: ['schemas:read'] }));
  const [port = 0, adminPort = 0] = await freePorts(2);
  const database = resources.use(await createDatabase());
  resources.use(
    await startService(federationProcess, {
      logDirectory: inject('temporaryDirectory'),
      access: {},
      namespace: namespace.name,
      ports: [port, adminPort],
      settings: {
        ROLLCALL_DATABASE_URL: database.url,
        ROLLCALL_GATEWAY_KEYS_URL: `${gateway.url}/.well-known/jwks.json`,
        ROLLCALL_REGISTRY_URLS: registry.url,
        ROLLCALL_SERVICE_URL: `http://127.0.0.1:${port}`,
      },
    }),
  );
}, 180_000);

afterAll(() => resources.disposeAsync());

/** `rollcall graph`, as a pipeline would run it. */
function graph(...args: readonly string[]): Promise<RollcallResult> {
  return graphAs(token, ...args);
}

function graphAs(ROLLCALL_TOKEN: string, ...args: readonly string[]): Promise<RollcallResult> {
  return rollcall(['graph', ...args], { env: { ROLLCALL_GATEWAY: gateway.url, ROLLCALL_TOKEN } });
}

async function introspect(name: string, serviceUrl: string): Promise<void> {
  const answer = await fetch(`${gateway.url}/api/v1/federation/schemas/introspect`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name, serviceUrl }),
  });
  expect(answer.status).toBe(200);
}

async function schemaFile(sdl: string): Promise<string> {
  const path = join(await mkdtemp(join(inject('temporaryDirectory'), 'schema-')), 'schema.graphql');
  await writeFile(path, sdl);
  return path;
}

test('the command line shows what is in the graph, checks a change, and reads schemas anew', {
  timeout: 180_000,
}, async () => {
  // The gateway has heard of federation.
  await expect.poll(async () => (await graph('subgraphs')).code, WAIT).toBe(0);
  expect(await graph('subgraphs')).toMatchObject({ out: '', err: 'There are no services with GraphQL.\n' });
  expect(await graph('history')).toMatchObject({ code: 0, out: '', err: 'There are no such graphs.\n' });
  expect(await graph('supergraph')).toMatchObject({ code: 1, out: '' });

  const shop = await startSubgraph(products);
  await introspect('shop', shop.url);
  const people = await startSubgraph(users);
  await introspect('people', people.url);
  const { out: listed } = await graph('subgraphs');
  expect(listed).toMatch(/^SERVICE +STATUS +VERSION +CHANGED +URL +ERROR\npeople +composed .*\nshop +composed .*\n$/);
  expect(JSON.parse((await graph('subgraphs', '-o', 'json')).out).schemas).toHaveLength(2);
  expect((await graph('supergraph')).out).toContain('type User');
  expect((await graph('history')).out).toMatch(/^GRAPH .*\n2 .* 2 +- +\+people\n1 .* 1 +- +-\n$/);
  expect(await graph('history', '--limit', '1')).toMatchObject({
    err: expect.stringContaining('There are more graphs'),
  });

  const fits = await graph('check', await schemaFile(products.sdl), '--service', 'shop');
  expect(fits).toMatchObject({
    code: 0,
    out: expect.stringContaining('The schema of shop composes with the others.'),
    err: '',
  });
  const clashes = await graph('check', await schemaFile(clashing.sdl), '--service', 'another');
  expect(clashes).toMatchObject({ code: 1, out: expect.stringMatching(/^CODE +MESSAGE\n[A-Z_]+ +\S/), err: '' });

  people.claim(users.sdl.replace('name: String', 'name: String age: Int'));
  await shop.stop();
  const refreshed = await graph('refresh');
  expect(refreshed).toMatchObject({ code: 1, err: expect.stringMatching(/^shop: .* \(INTROSPECTION_FAILED\)\n$/) });
  expect(refreshed.out).toMatch(/^people +composed [^]*^shop +unreachable /m);
  expect((await graph('supergraph')).out).toContain('age: Int');
});

test('the command line publishes documents of clients, and lists them', { timeout: 120_000 }, async () => {
  await expect.poll(async () => (await graph('documents')).code, WAIT).toBe(0);
  const directory = await mkdtemp(join(inject('temporaryDirectory'), 'documents-'));
  await writeFile(join(directory, 'product.graphql'), '{ product }');
  await writeFile(join(directory, 'manifest.json'), '{"users":"{ users { name } }"}');
  const published = 'Documents of web: 1 published, 0 known before.\n';
  expect(await graph('publish', directory, '--client', 'web')).toMatchObject({ code: 0, out: published });
  expect(await graph('publish', join(directory, 'manifest.json'), '--client', 'web')).toMatchObject({ out: published });
  expect(await graph('publish', directory, '--client', 'web', '-o', 'json')).toMatchObject({
    out: expect.stringContaining('"known": 1'),
  });
  expect((await graph('documents', '--client', 'web')).out).toMatch(
    /^DOCUMENT +CLIENT +AGE\nusers +web .*\n[0-9a-f]{64} +web .*\n$/,
  );
  await writeFile(join(directory, 'product.graphql'), '{ product');
  expect(await graph('publish', directory, '--client', 'web')).toMatchObject({
    code: 1,
    err: expect.stringContaining('Syntax Error'),
  });
});

test('the command line says which scope is missing', async () => {
  const { code, out, err } = await graphAs(readerToken, 'refresh');
  expect({ code, out, err }).toEqual({ code: 1, out: '', err: expect.stringContaining('schemas:write') });
});
