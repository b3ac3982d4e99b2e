import type { App } from '@rollcall/platform/http/server.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createMetrics } from '@rollcall/platform/process/metrics.ts';
import { describe, expect, onTestFinished, test } from 'vitest';
import { parseTrustedProxies } from '../admission/client-address.ts';
import { DEFAULT_LIMITS } from '../admission/limit-for.ts';
import { createLimits } from '../admission/limits.ts';
import { buildApp } from '../app.ts';
import type { KnownClient } from '../identity/api-clients.ts';
import { keepSecret } from '../identity/client-secret.ts';
import { tokenRoute } from './token.ts';

const KEY = Buffer.alloc(32);
const SECRET = 'a+secret%41 of the shop';

function client(clientId: string, scopes: readonly string[]): KnownClient {
  const secret = keepSecret(Buffer.from(SECRET), KEY);
  if (secret === undefined) throw new Error('The secret is too short');
  return { clientId, tier: 'standard', scopes, secret, generation: '1' };
}

const CLIENTS = new Map([client('shop', ['a', 'b']), client('everything', ['*'])].map((each) => [each.clientId, each]));

/** A gateway with its clients. */
async function startApp(): Promise<App> {
  const metrics = createMetrics('test');
  const log = createLogger('test', 'silent');
  const limits = createLimits({
    limits: DEFAULT_LIMITS,
    trustedProxies: parseTrustedProxies(['127.0.0.1']),
    redis: undefined,
    redisPrefix: '',
    redisTimeoutMs: 100,
    metrics,
    log,
  });
  const app = await buildApp({
    log,
    metrics,
    version: '1',
    bodyLimit: 1000,
    routes: [
      (scope) =>
        tokenRoute(scope, {
          tokens: { issue: async () => ({ token: 'issued', expiresInSeconds: 60 }) },
          clients: { find: (id) => CLIENTS.get(id) },
          keys: { fingerprintKey: () => KEY },
          exchange: { exchange: async () => ({ token: 'exchanged', expiresInSeconds: 60 }) },
          targets: { findRegistered: () => undefined, isComplete: () => true },
          limits,
        }),
    ],
    corsOrigins: new Set(),
    accessLog: undefined,
    tracing: undefined,
    closingLimitMs: 100,
    isStopping: () => false,
  });
  onTestFinished(() => app.close());
  return app;
}

interface Asking {
  readonly payload?: string | Buffer;
  readonly basic?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Asks for a token. @param asking the user and password of HTTP Basic, as they are to be sent. */
async function ask(asking: Asking, app?: App) {
  const { payload = 'grant_type=client_credentials', basic, headers } = asking;
  const given = {
    'content-type': 'application/x-www-form-urlencoded',
    ...(basic === undefined ? {} : { authorization: `Basic ${Buffer.from(basic).toString('base64')}` }),
    ...headers,
  };
  const request = { method: 'POST', url: '/api/v1/auth/token', headers: given, payload } as const;
  const answer = await (app ?? (await startApp())).inject(request);
  return { status: answer.statusCode, headers: answer.headers, body: answer.json() };
}

const FORM = 'grant_type=client_credentials&client_id=a&client_secret=b';
const others = (count: number) => Array.from({ length: count }, (_, index) => `&p${index}=1`).join('');
const encoded = `shop:${encodeURIComponent(SECRET)}`;

test.each<[what: string, asking: Asking, status: number, error: string]>([
  ['a parameter that is given twice', { payload: `${FORM}&client_id=a` }, 400, 'invalid_request'],
  ['one that nobody knows, given twice', { payload: `${FORM}&x&y&x` }, 400, 'invalid_request'],
  ['more parameters than there can be a reason for', { payload: FORM + others(62) }, 400, 'invalid_request'],
  ['no grant type', { payload: 'scope=a', basic: encoded }, 400, 'invalid_request'],
  ['a grant type without a value', { payload: 'grant_type=', basic: encoded }, 400, 'invalid_request'],
  ['another grant type', { payload: 'grant_type=password', basic: encoded }, 400, 'unsupported_grant_type'],
  ['two authentications', { payload: FORM, basic: encoded }, 400, 'invalid_request'],
  ['a secret in the form beside HTTP Basic', { payload: 'client_secret=b', basic: encoded }, 400, 'invalid_request'],
  ['another id in the form than in HTTP Basic', { payload: 'client_id=b', basic: encoded }, 400, 'invalid_request'],
  ['a secret without an id', { payload: 'client_secret=b' }, 400, 'invalid_request'],
  ['no authentication', {}, 401, 'invalid_client'],
  ['a body that is no UTF-8', { payload: Buffer.from('x=\xff', 'latin1'), basic: encoded }, 400, 'invalid_request'],
  ['an id without a secret', { payload: 'client_id=b' }, 401, 'invalid_client'],
  ['another scheme', { headers: { authorization: 'Bearer x' } }, 401, 'invalid_client'],
  ['HTTP Basic without a colon', { basic: 'shop' }, 401, 'invalid_client'],
  ['a wrong secret', { basic: 'shop:wrong' }, 401, 'invalid_client'],
  [
    'a scope that the client lacks',
    { payload: 'grant_type=client_credentials&scope=c', basic: encoded },
    400,
    'invalid_scope',
  ],
  ['a body in JSON', { payload: '{}', headers: { 'content-type': 'application/json' } }, 415, 'invalid_request'],
  ['too large a body', { payload: `scope=${'a'.repeat(9000)}`, basic: encoded }, 413, 'invalid_request'],
])('%s is refused as RFC 6749 has it', async (_what, asking, ...[status, error]) => {
  const answer = await ask(asking);
  expect(answer).toMatchObject({ status, body: { error, error_description: expect.stringMatching(/^[^"\\]+$/) } });
  expect(answer.headers['cache-control']).toBe('no-store');
  expect(answer.headers['www-authenticate']).toBe(status === 401 ? 'Basic realm="rollcall"' : undefined);
});

const everything = { basic: `everything:${encodeURIComponent(SECRET)}` };
const askFor = (scope: string) => ask({ payload: `grant_type=client_credentials&scope=${scope}`, ...everything });

test.each(['%00', 'a%0Ab', '%01', '%09', 'a%20%0D', '%7F', '%22', '%5C', '%C3%A9'])(
  'what is no scope is granted to nobody (RFC 6749, section 3.3): %s',
  async (scope) => expect(await askFor(scope)).toMatchObject({ status: 400, body: { error: 'invalid_scope' } }),
);

test('every character of a scope is granted, and spaces are between scopes', async () => {
  expect(await askFor('+!%23%5B%5D~++b+')).toMatchObject({ status: 200, body: { scope: '!#[]~ b' } });
});

test.each(['scope=%zz', 'x=%', 'x=%4', '%C3=x'])('a form is refused that is not percent-encoded: %s', async (more) => {
  const answer = await ask({ payload: `grant_type=client_credentials&${more}`, ...everything });
  expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
});

test('parameters that nobody knows are ignored', async () => {
  expect(await ask({ payload: FORM + others(61) })).toMatchObject({ status: 401, body: { error: 'invalid_client' } });
});

test('a parameter without a value counts as left out', async () => {
  const payload = 'grant_type=client_credentials&client_id=&client_secret=&scope=';
  expect(await ask({ payload, basic: encoded })).toMatchObject({ status: 200, body: { scope: 'a b' } });
});

test('a secret with characters that HTTP Basic has encoded may be sent encoded or as it is', async () => {
  for (const basic of [encoded, `shop:${SECRET}`]) {
    expect(await ask({ basic })).toMatchObject({ status: 200, body: { access_token: 'issued', scope: 'a b' } });
  }
});

const forwarded = (address: string) => ({ 'x-forwarded-for': address });

/** They take hundreds of scrypt hashes. */
describe('limits', { timeout: 120_000 }, () => {
  test('failures are counted by client id and address, and never shut out who has the right secret', async () => {
    const app = await startApp();
    const guess = (basic: string, address: string) => ask({ basic, headers: forwarded(address) }, app);
    for (let count = 0; count < 20; count += 1) {
      expect((await guess('shop:wrong', '203.0.113.1')).status).toBe(401);
    }
    const limited = await guess('shop:wrong', '203.0.113.1');
    expect(limited).toMatchObject({ status: 429, body: { error: 'temporarily_unavailable' } });
    expect(limited.headers['retry-after']).toMatch(/^\d+$/);
    expect((await guess('other:wrong', '203.0.113.1')).status).toBe(401);
    expect((await guess('shop:wrong', '203.0.113.2')).status).toBe(401);
    expect((await guess(encoded, '203.0.113.1')).status).toBe(200);
  });

  test('strangers without end neither shut out a client nor keep it waiting', async () => {
    const app = await startApp();
    const strangers = Array.from({ length: 40 }, (_, index) => ask({ basic: `stranger-${index}:wrong` }, app));
    const startedAt = performance.now();
    expect((await ask({ basic: encoded }, app)).status).toBe(200);
    const tookMs = performance.now() - startedAt;
    const statuses = (await Promise.all(strangers)).map(({ status }) => status);
    expect(performance.now() - startedAt).toBeGreaterThan(5 * tookMs);
    expect(new Set(statuses)).toEqual(new Set([401, 503]));
  });

  test('tokens are counted by client', async () => {
    const app = await startApp();
    const statuses: number[] = [];
    for (let count = 0; count < 61; count += 1) {
      statuses.push((await ask({ basic: encoded, headers: forwarded(`203.0.113.${count}`) }, app)).status);
    }
    expect(statuses).toEqual([...Array<number>(60).fill(200), 429]);
  });
});
