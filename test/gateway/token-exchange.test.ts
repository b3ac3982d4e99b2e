import { systemClock } from '@rollcall/platform/clock.ts';
import { createGatewayKeys } from '@rollcall/platform/http/gateway-keys.ts';
import { createIdentityReader } from '@rollcall/platform/http/identity.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import {
  type Backend,
  createClient,
  requestToken,
  startBackend,
  startGateway,
  type TestClient,
  tokenOf,
} from './gateway.ts';

const WAIT = { timeout: 60_000 };
const JWT = 'urn:ietf:params:oauth:token-type:jwt';
const stack = new AsyncDisposableStack();
let namespace: TestNamespace;
let gateway: RunningService;
let middle: Backend;
let exchanger: TestClient;
let callerToken: string;

beforeAll(async () => {
  namespace = await createNamespace('token-exchange');
  const { url: databaseUrl } = stack.use(await createDatabase());
  const registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl }));
  gateway = stack.use(await startGateway({ namespace, registry: registry.url }));
  middle = stack.use(await startBackend());
  for (const service_name of ['middle', 'behind'])
    await registry.call('POST', '/services/register', { service_name, service_url: middle.url });
  exchanger = await createClient(namespace, { id: 'middle', scopes: ['identities:exchange'] });
  await tokenOf(gateway, exchanger);
  callerToken = await tokenOf(gateway, await createClient(namespace, { id: 'anna', scopes: ['a'] }));
});

afterAll(() => stack.disposeAsync());

/** The identity by which the gateway shows a service who calls. */
async function shownTo(service: string): Promise<string> {
  const call = () =>
    fetch(`${gateway.url}/api/v1/${service}/x`, { headers: { authorization: `Bearer ${callerToken}` } });
  await expect.poll(async () => (await call()).status, WAIT).toBe(200);
  return String(middle.requests.at(-1)?.headers['x-rollcall-identity']);
}

async function exchange(form: Record<string, string>, by = exchanger) {
  const grant_type = 'urn:ietf:params:oauth:grant-type:token-exchange';
  const all = { grant_type, subject_token_type: JWT, audience: 'behind', ...form };
  const answer = await requestToken(gateway, by, all);
  return { status: answer.status, body: (await answer.json()) as Readonly<Record<string, unknown>> };
}

async function readerOf(service: string) {
  const keys = createGatewayKeys(new URL(`${gateway.url}/.well-known/jwks.json`), systemClock);
  const reader = createIdentityReader({ issuer: 'rollcall', keys, clock: systemClock, service });
  return (token: unknown) => reader.read({ headers: { 'x-rollcall-identity': String(token) } });
}

test('a service acts for who calls it, at another service, which checks that as all identities', async () => {
  await shownTo('behind');
  const { status, body } = await exchange({ subject_token: await shownTo('middle') });
  expect({ status, body }).toMatchObject({ status: 200, body: { issued_token_type: JWT, token_type: 'N_A' } });
  const anna = { subject: 'anna', tier: 'premium', scopes: new Set(['a']), expiresAtMs: expect.any(Number) };
  expect(await (await readerOf('behind'))(body['access_token'])).toEqual(anna);
  expect(await (await readerOf('middle'))(body['access_token'])).toBeUndefined();
});

test('a service exchanges only what was shown to itself, and nothing that it has made of it', async () => {
  const refused = { status: 400, body: { error: 'invalid_request' } };
  expect(await exchange({ subject_token: await shownTo('behind') })).toMatchObject(refused);
  const { body } = await exchange({ subject_token: await shownTo('middle') });
  expect(await exchange({ subject_token: String(body['access_token']) })).toMatchObject(refused);
  expect(await exchange({ subject_token: callerToken })).toMatchObject(refused);
});

test('many more exchanges than tokens a minute are answered', async () => {
  const subject_token = await shownTo('middle');
  const answers = await Promise.all(Array.from({ length: 70 }, () => exchange({ subject_token })));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
});

test('neither the scope nor the target may be missing', async () => {
  const subject_token = await shownTo('middle');
  expect(await exchange({ subject_token, audience: 'nobody' })).toMatchObject({
    status: 400,
    body: { error: 'invalid_target' },
  });
  const other = await createClient(namespace, { id: 'other', scopes: ['a'] });
  await tokenOf(gateway, other);
  expect(await exchange({ subject_token }, other)).toMatchObject({
    status: 400,
    body: { error: 'unauthorized_client' },
  });
});

test('a client that is deleted exchanges nothing any more', async () => {
  const gone = await createClient(namespace, { id: 'gone', scopes: ['identities:exchange'] });
  const form = { subject_token: await tokenOf(gateway, gone), subject_token_type: JWT.replace('jwt', 'access_token') };
  expect(await exchange(form, gone)).toMatchObject({ status: 200 });
  await namespace.kubectl(['delete', 'apiclient', 'gone']);
  await expect.poll(() => exchange(form, gone), WAIT).toMatchObject({ status: 401, body: { error: 'invalid_client' } });
  expect(await exchange(form)).toMatchObject({
    status: 400,
    body: { error: 'invalid_request' },
  });
});
