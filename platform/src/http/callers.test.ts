import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../clock.ts';
import { createLogger } from '../process/log.ts';
import { callerOf, createCallerReader, requireCallers } from './callers.ts';
import { codedErrorBody } from './errors.ts';
import { ACCESS_TOKEN_TYPE, IDENTITY_TOKEN_TYPE, identityAudience } from './identity.ts';
import { createKeySet } from './key-sets.ts';
import { type App, createServer } from './server.ts';
import { answerToServiceError } from './service-errors.ts';

let pair: Awaited<ReturnType<typeof generateKeyPair>>;
let keySet: string;
const keys = createHttpServer((_request, response) => response.end(keySet));
let app: App;

beforeAll(async () => {
  pair = await generateKeyPair('ES256');
  keySet = JSON.stringify({ keys: [{ ...(await exportJWK(pair.publicKey)), alg: 'ES256', kid: 'one' }] });
  await once(keys.listen(0, '127.0.0.1'), 'listening');
  app = await appFor('payment', new URL(`http://127.0.0.1:${(keys.address() as AddressInfo).port}/`));
});

afterAll(async () => {
  await app.close();
  keys.close();
});

async function appFor(service: string, jwksUrl: URL, more: (api: App) => void = () => {}): Promise<App> {
  const accessTokenAudience = service === 'payment' ? 'rollcall' : undefined;
  const keysOfGateway = createKeySet(jwksUrl, { clock: systemClock, persistsMs: 0 });
  const options = { service, issuer: 'rollcall', keys: keysOfGateway, clock: systemClock, accessTokenAudience };
  const server = createServer({
    log: createLogger('test', 'silent'),
    metrics: new Registry(),
    bodyLimit: 1000,
    closingLimitMs: 100,
    mapError: answerToServiceError,
    renderError: codedErrorBody,
  });
  await server.register(
    async (api) => {
      requireCallers(api, service, createCallerReader(options));
      const [read, write] = service === 'payment' ? ['/payments', '/payments'] : ['/messages', '/emails'];
      api.get(read, (request) => ({ subject: callerOf(request).subject, scopes: [...callerOf(request).scopes] }));
      api.post(write, () => 'made');
      more(api);
      api.get('/health', ({ caller }) => ({ caller: caller?.subject ?? 'nobody' }));
    },
    { prefix: '/api/v1' },
  );
  return server;
}

interface Claims {
  readonly sub?: string;
  readonly scope?: string;
  readonly aud?: string;
  readonly iss?: string;
  readonly typ?: string;
  readonly key?: CryptoKey;
}

function sign({ sub = 'buyer', scope = 'payments:read', aud, iss = 'rollcall', typ, key }: Claims): Promise<string> {
  return new SignJWT({ sub, scope, aud: aud ?? identityAudience('payment'), iss })
    .setProtectedHeader({ alg: 'ES256', kid: 'one', typ: typ ?? IDENTITY_TOKEN_TYPE })
    .setExpirationTime('1 min')
    .sign(key ?? pair.privateKey);
}

const identity = async (claims: Claims = {}) => ({ 'x-rollcall-identity': await sign(claims) });
const bearer = async (claims: Claims = {}) => ({
  authorization: `Bearer ${await sign({ aud: 'rollcall', typ: ACCESS_TOKEN_TYPE, ...claims })}`,
});

async function ask(headers: Record<string, string>, url = '/api/v1/payments', server = app) {
  const answer = await server.inject({ url, headers });
  return { status: answer.statusCode, headers: answer.headers, body: answer.json() };
}

test('the identity that the gateway has signed says who calls', async () => {
  const scope = 'payments:read refunds:write';
  expect(await ask(await identity({ scope }))).toMatchObject({
    status: 200,
    body: { subject: 'buyer', scopes: scope.split(' ') },
  });
});

test("so does an access token of the gateway's, alone or with an identity of the same subject", async () => {
  expect(await ask(await bearer())).toMatchObject({ status: 200, body: { subject: 'buyer' } });
  expect(await ask({ ...(await bearer()), ...(await identity()) })).toMatchObject({ status: 200 });
});

test.each<[string, () => Promise<Record<string, string>>]>([
  ['nothing', async () => ({})],
  ['two different subjects', async () => ({ ...(await bearer({ sub: 'other' })), ...(await identity()) })],
  ['a good identity and a bad token', async () => ({ ...(await identity()), authorization: 'Bearer x.y.z' })],
  ['a bad identity and a good token', async () => ({ ...(await bearer()), 'x-rollcall-identity': 'x' })],
  ['other credentials than a token', async () => ({ authorization: 'Basic YTpi' })],
  ["another service's identity", () => identity({ aud: identityAudience('communication') })],
  ['an identity of another issuer', () => identity({ iss: 'elsewhere' })],
  ['an access token for an identity', () => identity({ typ: ACCESS_TOKEN_TYPE })],
  ['an identity for an access token', () => bearer({ typ: IDENTITY_TOKEN_TYPE })],
  ['a token for another audience', () => bearer({ aud: 'elsewhere' })],
  ['a key of its own', async () => identity({ key: (await generateKeyPair('ES256')).privateKey })],
])('who shows %s is not let in', async (_, headers) => {
  const answer = await ask(await headers());
  expect(answer).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHENTICATED' } } });
  expect(answer.headers['www-authenticate']).toBe('Bearer');
});

test('an access token is no credential where the service does not take them', async () => {
  const { port } = keys.address() as AddressInfo;
  await using server = await appFor('communication', new URL(`http://127.0.0.1:${port}/`));
  const aud = identityAudience('communication');
  const scope = 'messages:read';
  expect(await ask(await bearer({ scope }), '/api/v1/messages', server)).toMatchObject({ status: 401 });
  expect(await ask(await identity({ aud, scope }), '/api/v1/messages', server)).toMatchObject({ status: 200 });
});

test.each(['', 'payments:write', 'payments', 'payments:admin'])('with the scopes "%s" nobody reads', async (scope) => {
  const answer = await ask(await identity({ scope }));
  expect(answer).toMatchObject({
    status: 403,
    body: { error: { code: 'FORBIDDEN', details: { missing: ['payments:read'] } } },
  });
  expect(answer.body.error.message).toContain('payments:read');
});

test('the scope that stands for all is enough', async () => {
  expect(await ask(await identity({ scope: '*' }))).toMatchObject({ status: 200 });
});

test('what is open to all reads nothing that a caller shows', async () => {
  const answer = await ask({ authorization: 'Bearer nonsense', 'x-rollcall-identity': 'x' }, '/api/v1/health');
  expect(answer).toMatchObject({ status: 200, body: { caller: 'nobody' } });
});

test('while the keys of the gateway cannot be had, callers are asked to come back', async () => {
  await using server = await appFor('payment', new URL('http://127.0.0.1:9/'));
  const answer = await ask(await identity(), '/api/v1/payments', server);
  expect(answer).toMatchObject({ status: 503, body: { error: { code: 'UNAVAILABLE' } } });
  expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
  expect(await ask({}, '/api/v1/health', server)).toMatchObject({ status: 200 });
});

test('a route that the table of scopes lacks keeps the service from starting', async () => {
  const started = appFor('payment', new URL('http://127.0.0.1:9/'), (api) => void api.get('/secrets', () => 'told'));
  await expect(started).rejects.toThrow('The table of scopes lacks GET /secrets');
});
