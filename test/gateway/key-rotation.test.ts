import { createKeyStore } from '@rollcall/gateway/identity/key-store.ts';
import { type Clock, systemClock } from '@rollcall/platform/clock.ts';
import { createGatewayKeys } from '@rollcall/platform/http/gateway-keys.ts';
import { createIdentityReader, type IdentityReader } from '@rollcall/platform/http/identity.ts';
import { connectByFile, type KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { decodeProtectedHeader } from 'jose';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { freeze, thaw } from '../support/freeze.ts';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistryProcess } from '../support/registry.ts';
import type { Replica } from '../support/replica.ts';
import {
  createClient,
  forgedToken,
  requestToken,
  startBackend,
  startGatewayProcess,
  type TestClient,
  tokenOf,
} from './gateway.ts';

const SECRET = 'rollcall-gateway-keys';
const ROTATION_SECONDS = 3600;
const TOKEN_SECONDS = 600;
/** A key is published so long before it signs: identity/identity.ts. */
const PUBLISHED_AHEAD_SECONDS = 900;
const REFRESH_SECONDS = 2;
const PATIENCE = { timeout: 60_000, interval: 500 };

let namespace: TestNamespace;
let registry: Replica;
let client: TestClient;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  namespace = await createNamespace('rotation');
  const database = stack.use(await createDatabase());
  registry = stack.use(await startRegistryProcess({ namespace: namespace.name, databaseUrl: database.url }));
  client = await createClient(namespace, { id: 'tests', scopes: ['registrations:read'] });
});

afterAll(() => stack.disposeAsync());

function start(): Promise<Replica> {
  return startGatewayProcess({
    namespace,
    registry: registry.url,
    settings: {
      ROLLCALL_KEY_ROTATION_SECONDS: String(ROTATION_SECONDS),
      ROLLCALL_KEY_REFRESH_SECONDS: String(REFRESH_SECONDS),
      ROLLCALL_TOKEN_SECONDS: String(TOKEN_SECONDS),
      ROLLCALL_LIMIT_ANONYMOUS: '10000',
      ROLLCALL_LIMIT_PREMIUM: '10000',
    },
  });
}

interface StoredKeys {
  readonly keys: readonly { readonly kid: string; readonly createdAtMs: number }[];
}

/** Lets time pass for the keys alone: as if all of them had been made earlier. */
async function age(seconds: number): Promise<void> {
  const encoded = await namespace.kubectl(['get', 'secret', SECRET, '-o', 'jsonpath={.data.keys\\.json}']);
  const stored = JSON.parse(Buffer.from(encoded, 'base64').toString()) as StoredKeys;
  const keys = stored.keys.map((key) => ({ ...key, createdAtMs: key.createdAtMs - seconds * 1000 }));
  const data = { 'keys.json': Buffer.from(JSON.stringify({ ...stored, keys })).toString('base64') };
  await namespace.kubectl(['patch', 'secret', SECRET, '--type', 'merge', '--patch', JSON.stringify({ data })]);
}

async function published(at: Replica): Promise<readonly string[]> {
  // A key that it does not know makes a replica read, if it has not done so for some seconds.
  await statusWith(
    at,
    forgedToken({ alg: 'ES256', typ: 'at+jwt', kid: 'unheard-of' }, { iss: 'rollcall' }, () => 'c2ln'),
  );
  const { keys } = (await (await fetch(`${at.url}/.well-known/jwks.json`)).json()) as { keys: { kid: string }[] };
  return keys.map(({ kid }) => kid);
}

async function statusWith(at: Replica, token: string): Promise<number> {
  const answer = await fetch(`${at.url}/api/v1/registry/services`, { headers: { authorization: `Bearer ${token}` } });
  await answer.arrayBuffer();
  return answer.status;
}

/** @returns the key that a replica signs with. */
async function signingKey(at: Replica): Promise<string | undefined> {
  const { access_token: token = '' } = (await (await requestToken(at, client)).json()) as { access_token?: string };
  return decodeProtectedHeader(token).kid;
}

/** Moves all that asks for the time, and nothing else. */
function movedClock() {
  let offsetMs = 0;
  const clock: Clock = {
    now: () => new Date(Date.now() + offsetMs),
    monotonicMs: () => performance.now() + offsetMs,
  };
  return {
    clock,
    advance: (seconds: number): void => {
      offsetMs += seconds * 1000;
    },
  };
}

test('a replica that cannot read the keys any more changes over when the others do', async () => {
  const { clock, advance } = movedClock();
  const connection = await connectByFile(namespace.kubeconfigPath, {
    clock: systemClock,
    requestTimeoutMs: 10_000,
    maxSockets: 2,
  });
  onTestFinished(() => connection.close());
  let isCutOff = false;
  const fragile: KubeConnection = {
    namespace: connection.namespace,
    stream: (path, query, signal) => connection.stream(path, query, signal),
    close: () => connection.close(),
    request: (request) => (isCutOff ? Promise.reject(new Error('cut off')) : connection.request(request)),
  };
  const policy = { rotateAfterMs: 3_600_000, publishAheadMs: 900_000, verifyAfterMs: 600_000 };
  const log = createLogger('test', 'silent');
  const stores = [connection, fragile].map((by) =>
    createKeyStore({
      connection: by,
      namespace: namespace.name,
      secretName: 'moved',
      policy,
      refreshMs: 60_000,
      clock,
      log,
    }),
  );
  for (const { actor } of stores) {
    await actor.start();
    onTestFinished(() => actor.stop());
  }
  const read = () => Promise.all(stores.map((store) => store.verifying('unheard-of')));
  const signing = () => stores.map((store) => store.signing().kid);
  const kids = () => stores.map((store) => store.published().keys.map(({ kid }) => kid));
  const [old] = signing();
  advance(3600 - 900);
  await read();
  // The one has made it, the other may have read before.
  advance(60);
  await read();
  const [pair = []] = kids();
  expect(kids()).toEqual([pair, pair]);
  expect([pair.length, pair[0], signing()]).toEqual([2, old, [old, old]]);
  isCutOff = true;
  advance(900);
  await read();
  expect(signing()).toEqual([pair[1], pair[1]]);
  expect(kids()).toEqual([pair, pair]);
  advance(600);
  await read();
  expect(kids()).toEqual([[pair[1]], [pair[1]]]);
});

test('a new key is published before it signs, and what the old one signed stays good in all replicas', async () => {
  await using first = await start();
  await using second = await start();
  await using sleeper = await start();
  const token = await tokenOf(first, client);
  const old = decodeProtectedHeader(token).kid ?? '';
  for (const at of [first, second, sleeper]) expect(await published(at)).toEqual([old]);
  await using backend = await startBackend();
  await registry.call('POST', '/services/register', { service_name: 'shop', service_url: backend.url });
  const identityBy = async (at: Replica, reader: IdentityReader): Promise<string | undefined> => {
    const answer = await fetch(`${at.url}/api/v1/shop/`, { headers: { authorization: `Bearer ${token}` } });
    if (answer.status !== 200) return undefined;
    const { headers } = (await answer.json()) as { headers: Record<string, string> };
    return (await reader.read({ headers }))?.subject;
  };

  // One replica stands still for the whole of the rotation, another is unavailable.
  await freeze(sleeper.process.pid);
  await second.kill();
  await age(ROTATION_SECONDS - PUBLISHED_AHEAD_SECONDS);
  await expect.poll(() => published(first), PATIENCE).toHaveLength(2);
  const next = (await published(first)).find((kid) => kid !== old) ?? '';
  expect(await signingKey(first)).toBe(old);
  await using third = await start();
  expect(await published(third)).toEqual([old, next]);
  expect(await signingKey(third)).toBe(old);

  // A service fetches the key set by then at the latest, and keeps it.
  const reader = createIdentityReader({
    service: 'shop',
    issuer: 'rollcall',
    keys: createGatewayKeys(new URL(`${third.url}/.well-known/jwks.json`), systemClock),
    clock: systemClock,
  });
  await expect.poll(() => identityBy(third, reader), PATIENCE).toBe('tests');

  await third.kill();
  await age(PUBLISHED_AHEAD_SECONDS);
  await expect
    .poll(async () => [await published(first), await signingKey(first)], PATIENCE)
    .toEqual([[old, next], next]);
  thaw(sleeper.process.pid);
  await using fourth = await start();
  const newToken = await tokenOf(first, client);
  expect(decodeProtectedHeader(newToken).kid).toBe(next);
  for (const at of [first, sleeper, fourth]) {
    expect([await statusWith(at, token), await statusWith(at, newToken)]).toEqual([200, 200]);
    expect(await published(at)).toEqual([old, next]);
    expect(await signingKey(at)).toBe(next);
    await expect.poll(() => identityBy(at, reader), PATIENCE).toBe('tests');
  }

  // Nothing that the old key signed can be valid any more.
  await age(TOKEN_SECONDS + 60);
  for (const at of [first, sleeper, fourth]) {
    await expect.poll(() => published(at), PATIENCE).toEqual([next]);
    expect(await statusWith(at, newToken)).toBe(200);
  }
}, 600_000);
