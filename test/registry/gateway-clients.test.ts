import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { signWebhook } from '@rollcall/client/webhook-signature.ts';
import { freePorts } from '@rollcall/local/ports.ts';
import { identityAudience, identityHeaders } from '@rollcall/platform/http/identity.ts';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type Backend, createClient, startBackend, tokenOf } from '../gateway/gateway.ts';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { type Answer, callApi, type Replica, startReadyReplica } from '../support/replica.ts';
import { createGrpcClient } from './grpc-client.ts';

// A registry that asks for credentials, behind the real gateway; and another one with keys of our
// own, for what no gateway signs.

const stack = new AsyncDisposableStack();
let namespace: TestNamespace;
let gateway: Replica;
let grpcPort: number;
let keys: Backend;
let registry: RunningService;
let pair: Awaited<ReturnType<typeof generateKeyPair>>;

const asking = (keysUrl: string) => ({
  ROLLCALL_AUTHENTICATION: 'token-review',
  ROLLCALL_READS: 'authenticated',
  ROLLCALL_GATEWAY_KEYS_URL: `${keysUrl}/.well-known/jwks.json`,
});

beforeAll(async () => {
  namespace = await createNamespace('clients');
  const { url: databaseUrl } = stack.use(await createDatabase());
  const [port = 0, adminPort = 0, gatewayGrpc = 0, registryGrpc = 0] = await freePorts(4);
  grpcPort = gatewayGrpc;
  const settings = { ...asking(`http://127.0.0.1:${port}`), ROLLCALL_GRPC_PORT: String(registryGrpc) };
  const behind = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl, settings }));
  await namespace.kubectl(['create', 'serviceaccount', 'gateway']);
  const tokenFile = join(inject('temporaryDirectory'), `${namespace.name}-token`);
  await writeFile(tokenFile, await namespace.kubectl(['create', 'token', 'gateway', '--audience', 'rollcall']));
  gateway = stack.use(
    await startReadyReplica('services/gateway/src/main.ts', {
      logDirectory: inject('temporaryDirectory'),
      access: inject('podEnvironment'),
      namespace: namespace.name,
      ports: [port, adminPort],
      settings: {
        ROLLCALL_REGISTRY_URLS: behind.url,
        ROLLCALL_REGISTRY_GRPC_URL: `http://127.0.0.1:${registryGrpc}`,
        ROLLCALL_TOKEN_FILE: tokenFile,
        ROLLCALL_GRPC_PORT: String(gatewayGrpc),
      },
    }),
  );
  pair = await generateKeyPair('ES256');
  const published = { keys: [{ ...(await exportJWK(pair.publicKey)), kid: 'one', alg: 'ES256' }] };
  keys = stack.use(await startBackend((_, response) => void response.end(JSON.stringify(published))));
  registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl, settings: asking(keys.url) }));
}, 180_000);

afterAll(() => stack.disposeAsync());

/**
 * Calls the registry through the gateway.
 *
 * @param request method and path, such as `GET /services`.
 */
function call(token: string | undefined, request: string, body?: object): Promise<Answer> {
  const [method = '', path = ''] = request.split(' ');
  const shown = token === undefined ? {} : { token };
  return callApi(gateway.url, { method, path: `/registry${path}`, body, ...shown });
}

test('clients of the gateway register names, which are theirs', async () => {
  const [mine, theirs] = await Promise.all(
    ['mine', 'theirs'].map(async (id) =>
      tokenOf(gateway, await createClient(namespace, { id, scopes: ['registrations:read', 'registrations:write'] })),
    ),
  );
  const shop = { service_name: 'shop', service_url: 'http://shop' };
  expect(await call(mine, 'POST /services/register', shop)).toMatchObject({ status: 200 });
  expect(await call(theirs, 'DELETE /services/shop')).toMatchObject({ status: 403, body: { error: 'Forbidden' } });
  expect(await call(theirs, 'GET /services/shop')).toMatchObject({ status: 200 });
  using grpc = createGrpcClient(grpcPort, theirs);
  expect(await grpc.call('Get', { serviceName: 'shop' })).toMatchObject({ code: 0 });
  expect(await grpc.call('Unregister', { serviceName: 'shop' })).toMatchObject({ code: 7 });
  expect(await call(mine, 'DELETE /services/shop')).toMatchObject({ status: 200 });
});

async function identity(more: JWTPayload = {}, header: { readonly typ?: string } = {}): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  const whom = { iss: 'rollcall', aud: identityAudience('registry'), sub: 'buyer', scope: 'registrations:read' };
  const claims = { ...whom, iat: now, exp: now + 60, ...more };
  return new SignJWT(claims)
    .setProtectedHeader({ alg: 'ES256', kid: 'one', typ: 'rollcall-identity+jwt', ...header })
    .sign(pair.privateKey);
}

async function statusWith(headers: Readonly<Record<string, string>>, at = registry): Promise<number> {
  const answer = await fetch(`${at.url}/api/v1/services`, { headers });
  await answer.arrayBuffer();
  return answer.status;
}

test.each<[string, number, () => Promise<Record<string, string>>]>([
  ['an identity for the registry', 200, async () => ({ [identityHeaders.token]: await identity() })],
  [
    'one for another service',
    403,
    async () => ({ [identityHeaders.token]: await identity({ aud: identityAudience('shop') }) }),
  ],
  [
    'one for the registry, admitted by another name',
    403,
    async () => ({ [identityHeaders.token]: await identity(), [identityHeaders.service]: 'shop' }),
  ],
  ['one without the scope', 403, async () => ({ [identityHeaders.token]: await identity({ scope: 'jobs:read' }) })],
  ['no identity, admitted by another name', 403, async () => ({ [identityHeaders.service]: 'shop' })],
  ['no identity, admitted by the name of the registry', 401, async () => ({ [identityHeaders.service]: 'registry' })],
  ['one of another gateway', 401, async () => ({ [identityHeaders.token]: await identity({ iss: 'other' }) })],
  ['one that has expired', 401, async () => ({ [identityHeaders.token]: await identity({ exp: 1 }) })],
  ['an access token for one', 401, async () => ({ [identityHeaders.token]: await identity({}, { typ: 'at+jwt' }) })],
  ['no identity but who it would be', 401, async () => ({ [identityHeaders.subject]: 'buyer' })],
  ['an identity as a bearer token', 401, async () => ({ authorization: `Bearer ${await identity()}` })],
  [
    'an identity beside a bad token',
    401,
    async () => ({ [identityHeaders.token]: await identity(), authorization: 'Bearer bad' }),
  ],
])('with %s the answer is %i', async (_what, status, headers) => {
  expect(await statusWith(await headers())).toBe(status);
});

test('503, not 401, where the keys of the gateway cannot be had', async () => {
  const { url: databaseUrl } = stack.use(await createDatabase());
  const settings = asking('http://127.0.0.1:9');
  await using cutOff = await startRegistry({ namespace: namespace.name, databaseUrl, settings });
  expect(await statusWith({ [identityHeaders.token]: await identity() }, cutOff)).toBe(503);
});

test('a signature covers the path at the registry, also through the gateway', async () => {
  const secret = 'k3y-and-long-enough';
  const token = await tokenOf(gateway, await createClient(namespace, { id: 'pipeline', scopes: ['jobs:write'] }));
  const config = { service_name: 'signed', endpoints: {}, secret };
  expect(await call(token, 'POST /webhooks/config', config)).toMatchObject({ status: 200 });
  const body = JSON.stringify({ service_name: 'signed', version: '1.0.0', artifact_url: 'shop:1.0.0' });
  const deploy = async (path: string) => {
    const signed = await signWebhook(secret, { path, body, at: new Date() });
    const headers = { ...signed, authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    return fetch(`${gateway.url}/api/v1/registry/webhooks/deploy`, { method: 'POST', headers, body });
  };
  expect((await deploy('/api/v1/registry/webhooks/deploy')).status).toBe(401);
  expect((await deploy('/api/v1/webhooks/update')).status).toBe(401);
  expect((await deploy('/api/v1/webhooks/deploy')).status).toBe(200);
});
