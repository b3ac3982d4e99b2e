import { freePorts } from '@rollcall/local/ports.ts';
import { identityAudience, identityHeaders } from '@rollcall/platform/http/identity.ts';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { startBackend } from '../gateway/gateway.ts';
import { createNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { createGrpcClient } from './grpc-client.ts';

// What many streams leave to others, at a registry that asks for credentials and at one that does
// not.

const KINDS = ['/services/watch', '/jobs/watch'];
const SHARE = 100;

const stack = new AsyncDisposableStack();
/** With their answers: one that nobody holds is closed when garbage is collected. */
const opened: { readonly closing: AbortController; readonly answer: Response }[] = [];
let asking: RunningService;
let open: RunningService;
let openGrpcPort: number;
let askingGrpcPort: number;
let token: string;
let pair: Awaited<ReturnType<typeof generateKeyPair>>;

beforeAll(async () => {
  const namespace = await createNamespace('slots');
  const { url: databaseUrl } = stack.use(await createDatabase());
  await namespace.kubectl(['create', 'serviceaccount', 'gateway']);
  token = (await namespace.kubectl(['create', 'token', 'gateway', '--audience', 'rollcall'])).trim();
  pair = await generateKeyPair('ES256');
  const published = { keys: [{ ...(await exportJWK(pair.publicKey)), kid: 'one', alg: 'ES256' }] };
  const keys = stack.use(await startBackend((_, response) => void response.end(JSON.stringify(published))));
  [openGrpcPort = 0, askingGrpcPort = 0] = await freePorts(2);
  const start = async (settings: Readonly<Record<string, string>>) =>
    stack.use(await startRegistry({ namespace: namespace.name, databaseUrl, settings }));
  [open, asking] = await Promise.all([
    start({ ROLLCALL_GRPC_PORT: String(openGrpcPort) }),
    start({
      ROLLCALL_GRPC_PORT: String(askingGrpcPort),
      ROLLCALL_AUTHENTICATION: 'token-review',
      ROLLCALL_GATEWAY_KEYS_URL: `${keys.url}/.well-known/jwks.json`,
    }),
  ]);
}, 180_000);

afterAll(() => stack.disposeAsync());
afterEach(() => {
  for (const { closing } of opened.splice(0)) closing.abort();
});

type Headers = Readonly<Record<string, string>>;

/** What the gateway says of a client of its. */
async function identity(sub: string): Promise<Headers> {
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: 'rollcall', aud: identityAudience('registry'), sub, scope: '*', iat: now, exp: now + 60 };
  const signed = await new SignJWT(claims)
    .setProtectedHeader({ alg: 'ES256', kid: 'one', typ: 'rollcall-identity+jwt' })
    .sign(pair.privateKey);
  return { [identityHeaders.token]: signed };
}

/** Opens an event stream, to be closed after the test. */
async function stream(registry: RunningService, path: string, headers: Headers): Promise<Response> {
  const closing = new AbortController();
  const { signal } = closing;
  const accept = { accept: 'text/event-stream' };
  const answer = await fetch(`${registry.url}/api/v1${path}`, { headers: { ...accept, ...headers }, signal });
  opened.push({ closing, answer });
  return answer;
}

/** @returns how many streams were answered with each status. */
async function streams(registry: RunningService, path: string, headers: readonly Headers[]) {
  const counts: Record<number, number> = {};
  for (const { status } of await Promise.all(headers.map((each) => stream(registry, path, each)))) {
    counts[status] = (counts[status] ?? 0) + 1;
  }
  return counts;
}

const times = (count: number, headers: Headers): Headers[] => Array.from({ length: count }, () => headers);

test.each(KINDS)('%s: clients of the gateway leave slots to one another, and to service accounts', async (path) => {
  const one = await identity('one');
  expect(await streams(asking, path, times(SHARE + 5, one))).toEqual({ 200: SHARE, 429: 5 });
  const refusal = await stream(asking, path, one);
  expect(refusal.headers.get('retry-after')).toBe('1');
  expect(await refusal.json()).toEqual({ error: 'Too many streams', message: expect.stringContaining('100') });
  for (const name of ['two', 'three', 'four', 'five']) {
    expect(await streams(asking, path, times(SHARE, await identity(name)))).toEqual({ 200: SHARE });
  }
  expect((await stream(asking, path, await identity('six'))).status).toBe(429);
  expect((await stream(asking, path, { authorization: `Bearer ${token}` })).status).toBe(200);
});

test.each(KINDS)('%s has the id of its request, like any answer', async (path) => {
  const { headers } = await stream(open, path, { 'x-request-id': 'of-the-caller' });
  expect(headers.get('x-request-id')).toBe('of-the-caller');
});

test('a slot is free again once its stream is over', async () => {
  const one = await identity('one');
  expect(await streams(asking, '/services/watch', times(SHARE, one))).toEqual({ 200: SHARE });
  opened.pop()?.closing.abort();
  await expect.poll(async () => (await stream(asking, '/services/watch', one)).status).toBe(200);
});

test('without authentication, too: by what the gateway says, and all together that it passes on for anybody', async () => {
  const path = '/services/watch';
  expect(await streams(open, path, times(SHARE + 1, await identity('one')))).toEqual({ 200: SHARE, 429: 1 });
  expect((await stream(open, path, await identity('two'))).status).toBe(200);
  const anybody = { 'x-forwarded-for': '192.0.2.1' };
  expect(await streams(open, path, times(SHARE + 1, anybody))).toEqual({ 200: SHARE, 429: 1 });
  // As the gateway itself comes, from the same address.
  expect((await stream(open, path, {})).status).toBe(200);
});

test.each([
  ['a registry that asks for credentials', () => askingGrpcPort, () => token],
  ['one that does not', () => openGrpcPort, () => undefined],
])('Watch over gRPC, at %s', async (_what, port, direct) => {
  using clients = new DisposableStack();
  const watch = async (caller: Headers, accountToken?: string) => {
    const client = clients.use(createGrpcClient(port(), accountToken, caller));
    return (count: number) =>
      Promise.all(
        Array.from({ length: count }, async () => {
          const call = clients.use(client.open('Watch', {}));
          const event = call.next().then(() => undefined);
          return Promise.race([event, call.ended.then(({ code }) => code)]).catch(async () => (await call.ended).code);
        }),
      );
  };
  const one = await watch(await identity('one'));
  expect(new Set(await one(SHARE))).toEqual(new Set([undefined]));
  // RESOURCE_EXHAUSTED.
  expect(await one(1)).toEqual([8]);
  for (const name of ['two', 'three', 'four', 'five']) {
    const other = await watch(await identity(name));
    expect(new Set(await other(SHARE))).toEqual(new Set([undefined]));
  }
  expect(await (await watch(await identity('six')))(1)).toEqual([8]);
  expect(await (await watch({}, direct()))(1)).toEqual([undefined]);
});
