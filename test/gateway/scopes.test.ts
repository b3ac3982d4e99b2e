import { freePorts } from '@rollcall/local/ports.ts';
import { identityAudience, identityHeaders } from '@rollcall/platform/http/identity.ts';
import type { Operation, Scope } from '@rollcall/platform/http/operations/operation.ts';
import { registryOperations } from '@rollcall/platform/http/operations/registry.ts';
import { generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createGrpcClient, type GrpcClient } from '../registry/grpc-client.ts';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { createClient, startGateway, tokenOf } from './gateway.ts';
import { connect } from './websocket-client.ts';

// Every operation of the table, asked for with its scope and with all scopes but that, at the
// gateway and at the registry.

const SCOPES: readonly Scope[] = [
  'registrations:read',
  'registrations:write',
  'jobs:read',
  'jobs:write',
  'metrics:read',
];
const FORBIDDEN = 7;

const stack = new AsyncDisposableStack();
let namespace: TestNamespace;
let registry: RunningService;
let gateway: RunningService;
let registryGrpc: number;
let gatewayGrpc: number;

beforeAll(async () => {
  namespace = await createNamespace('scopes');
  const database = stack.use(await createDatabase());
  [registryGrpc = 0, gatewayGrpc = 0] = await freePorts(2);
  registry = stack.use(
    await startRegistry({
      namespace: namespace.name,
      databaseUrl: database.url,
      settings: { ROLLCALL_GRPC_PORT: String(registryGrpc) },
    }),
  );
  const settings = {
    ROLLCALL_GRPC_PORT: String(gatewayGrpc),
    ROLLCALL_REGISTRY_GRPC_URL: `http://127.0.0.1:${registryGrpc}`,
  };
  gateway = stack.use(await startGateway({ namespace, registry: registry.url, settings }));
});

afterAll(() => stack.disposeAsync());

let clients = 0;

async function tokenWith(scopes: readonly string[]): Promise<string> {
  clients += 1;
  return tokenOf(gateway, await createClient(namespace, { id: `client-${clients}`, scopes }));
}

/** What a gateway would show the registry, which has no keys to verify it with here. */
async function identityWith(scopes: readonly string[]): Promise<string> {
  const { privateKey } = await generateKeyPair('ES256');
  return new SignJWT({ sub: 'buyer', scope: scopes.join(' '), aud: identityAudience('registry') })
    .setProtectedHeader({ alg: 'ES256' })
    .sign(privateKey);
}

/** @param route method and path as in the table. */
async function statusOf(base: string, route: string, headers: Record<string, string>): Promise<number> {
  const [method = '', path = ''] = route.replaceAll(/:\w+/g, 'nothing').replace('*', 'x').split(' ');
  const given = await fetch(`${base}${path}`, { method, headers });
  await given.body?.cancel();
  return given.status;
}

async function clientsWith(scopes: readonly string[]): Promise<readonly GrpcClient[]> {
  return [
    createGrpcClient(gatewayGrpc, await tokenWith(scopes)),
    createGrpcClient(registryGrpc, undefined, { [identityHeaders.token]: await identityWith(scopes) }),
  ];
}

async function code(client: GrpcClient, method: string): Promise<number> {
  if (method !== 'Watch') return (await client.call(method, { serviceName: 'nothing' })).code;
  using stream = client.open(method, {});
  try {
    await stream.next();
    return 0;
  } catch {
    return (await stream.ended).code;
  }
}

describe.each(registryOperations.filter(({ scope }) => scope !== undefined))('$name', (operation: Operation) => {
  const scope = operation.scope ?? '';
  const others = SCOPES.filter((each) => each !== scope);

  test('over REST', async () => {
    const [without, having] = [await tokenWith(others), await tokenWith([scope])];
    for (const route of operation.rest) {
      const asked = (token: string) =>
        statusOf(`${gateway.url}/api/v1/registry`, route, { authorization: `Bearer ${token}` });
      expect({ route, status: await asked(without) }).toEqual({ route, status: 403 });
      expect({ route, status: await asked(having) }).not.toEqual({ route, status: 403 });
    }
  });

  test('at the registry, as the gateway passes it on', async () => {
    const [without, having] = [await identityWith(others), await identityWith([scope])];
    for (const route of operation.rest) {
      const asked = (identity: string) =>
        statusOf(`${registry.url}/api/v1`, route, { [identityHeaders.token]: identity });
      expect({ route, status: await asked(without) }).toEqual({ route, status: 403 });
      expect({ route, status: await asked(having) }).not.toEqual({ route, status: 403 });
      const nobody = await statusOf(`${registry.url}/api/v1`, route, { [identityHeaders.service]: 'registry' });
      expect({ route, nobody }).toEqual({ route, nobody: 401 });
    }
  });

  test('over gRPC', async () => {
    for (const client of await clientsWith(others)) {
      for (const method of operation.grpc ?? [])
        expect([method, await code(client, method)]).toEqual([method, FORBIDDEN]);
      client[Symbol.dispose]();
    }
    for (const client of await clientsWith([scope])) {
      for (const method of operation.grpc ?? []) expect(await code(client, method)).not.toBe(FORBIDDEN);
      client[Symbol.dispose]();
    }
  });

  test('over a WebSocket', async () => {
    const url = `${gateway.url.replace('http', 'ws')}/api/ws`;
    const answers = async (scopes: readonly string[], channel: string) => {
      await using client = await connect(url, await tokenWith(scopes));
      client.send({ type: 'subscribe', channel });
      return await client.next();
    };
    for (const address of operation.webSocket ?? []) {
      const channel = address.replace('{service_name}', 'nothing');
      expect(await answers(others, channel)).toMatchObject({ type: 'error', payload: { code: 'INSUFFICIENT_SCOPE' } });
      expect(await answers([scope], channel)).toMatchObject({ type: 'subscribed', channel });
    }
  });
});

test('who has no scope reads health and documentation, and gets the scope that is missing in the answer', async () => {
  const headers = { authorization: `Bearer ${await tokenWith([])}` };
  for (const path of ['/health', '/openapi.json', '/docs']) {
    const answer = await fetch(`${gateway.url}/api/v1/registry${path}`, { headers });
    expect([path, answer.status]).toEqual([path, 200]);
  }
  const refused = await fetch(`${gateway.url}/api/v1/registry/updates/history`, { headers });
  expect(refused.headers.get('www-authenticate')).toBe('Bearer error="insufficient_scope", scope="jobs:read"');
  expect(await refused.json()).toMatchObject({ error: { details: { missing: ['jobs:read'] } } });
});

test('the registry has the routes of the table, and no others', async () => {
  const document = (await (await fetch(`${registry.url}/api/v1/openapi.json`)).json()) as {
    paths: Record<string, Record<string, unknown>>;
  };
  const described = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`),
  );
  const hidden = new Set(['GET /metrics', 'GET /openapi.json', 'GET /docs', 'GET /docs/*']);
  const inTable = registryOperations.flatMap(({ rest }) => rest).filter((route) => !hidden.has(route));
  expect(described.toSorted()).toEqual(inTable.toSorted());
});
