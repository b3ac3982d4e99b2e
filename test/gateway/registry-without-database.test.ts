import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { startTcpRelay, type TcpRelay } from '../kube/tcp-relay.ts';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import { callApi, type RunningService } from '../support/replica.ts';
import { createClient, startGateway, tokenOf } from './gateway.ts';

let namespace: TestNamespace;
let gateway: RunningService;
let database: TcpRelay;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  namespace = await createNamespace('dataless');
  const url = new URL(stack.use(await createDatabase()).url);
  database = stack.use(await startTcpRelay(Number(new URL(inject('postgresUrl')).port || 5432)));
  url.host = `127.0.0.1:${database.port}`;
  const registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl: url.href }));
  gateway = stack.use(await startGateway({ namespace, registry: registry.url }));
});

afterAll(() => stack.disposeAsync());

test('without PostgreSQL discovery and heartbeats go on by the gateway, whoever asks for history', async () => {
  const reader = await tokenOf(
    gateway,
    await createClient(namespace, { id: 'reader', scopes: ['registrations:read', 'jobs:read'] }),
  );
  const agent = await tokenOf(gateway, await createClient(namespace, { id: 'agent', scopes: ['registrations:write'] }));
  const call = async (token: string, request: string, body?: object) => {
    const [method = '', path = ''] = request.split(' ');
    return (await callApi(gateway.url, { method, path: `/registry${path}`, token, body })).status;
  };
  const shop = { service_name: 'shop', service_url: 'http://127.0.0.1:9' };
  expect(await call(agent, 'POST /services/register', shop)).toBe(200);
  await database[Symbol.asyncDispose]();
  for (let count = 0; count < 10; count += 1) expect(await call(reader, 'GET /updates/history')).toBe(503);
  expect(await call(agent, 'POST /services/shop/heartbeat')).toBe(200);
  expect(await call(reader, 'GET /services')).toBe(200);
});
