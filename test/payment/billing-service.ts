import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { paymentProcess } from '@rollcall/payment/service.ts';
import { type Clock, systemClock } from '@rollcall/platform/clock.ts';
import { ACCESS_TOKEN_TYPE } from '@rollcall/platform/http/identity.ts';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { Client } from 'pg';
import { inject } from 'vitest';
import { type Answer, type Replica, type RunningService, startReadyReplica, startService } from '../support/replica.ts';
import { type Supervised, supervise } from '../support/supervised.ts';

const SCRIPT = 'services/payment/src/main.ts';
const KEYS_PATH = '/.well-known/jwks.json';

/** The keys of a gateway, and tokens that it would give. They hold whatever the clock of a test says. */
interface TokenIssuer extends AsyncDisposable {
  readonly jwksUrl: string;
  tokenOf(subject: string, scope: string): Promise<string>;
}

async function startTokenIssuer(others: RequestListener): Promise<TokenIssuer> {
  const pair = await generateKeyPair('ES256');
  const keySet = JSON.stringify({ keys: [{ ...(await exportJWK(pair.publicKey)), alg: 'ES256', kid: 'one' }] });
  const server = createServer((request, response) => {
    if (request.url === KEYS_PATH) response.end(keySet);
    else others(request, response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    jwksUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}${KEYS_PATH}`,
    tokenOf: (subject, scope) =>
      new SignJWT({ sub: subject, scope, aud: 'rollcall', iss: 'rollcall' })
        .setProtectedHeader({ alg: 'ES256', kid: 'one', typ: ACCESS_TOKEN_TYPE })
        .setExpirationTime('20 years')
        .sign(pair.privateKey),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      const closed = once(server, 'close');
      server.close();
      await closed;
    },
  };
}

interface Call {
  readonly method: string;
  /** Relative to `/api/v1`. */
  readonly path: string;
  readonly body?: unknown;
  /** Sent as it is, in place of the body. */
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Calls of one subject. */
export interface Caller {
  call(call: Call): Promise<Answer>;
  get(path: string): Promise<Answer>;
  post(path: string, body?: unknown, key?: string): Promise<Answer>;
  patch(path: string, body: unknown): Promise<Answer>;
  delete(path: string): Promise<Answer>;
  /** What is no JSON. */
  bytes(path: string): Promise<Response>;
}

export interface BillingService extends AsyncDisposable {
  readonly service: RunningService;
  /** Starts another replica, as a process of its own, to be killed. */
  startProcess(): Promise<Replica>;
  /** Starts another replica that comes back when it is killed. */
  supervise(): Promise<Supervised>;
  /** @param scope all of billing when absent. */
  callerOf(subject: string, scope?: string, url?: string): Promise<Caller>;
  tokenOf(subject: string, scope: string): Promise<string>;
}

export interface BillingOptions {
  readonly databaseUrl: string;
  /** Contents of files by the name of the setting that has their path. */
  readonly files?: Readonly<Record<string, unknown>>;
  readonly settings?: Readonly<Record<string, string>>;
  readonly clock?: Clock;
  /** What the gateway answers, but for its keys; nothing by default. */
  readonly gateway?: RequestListener;
}

/** Starts payment in this process, with callers of a gateway that is not there. */
export async function startBilling(options: BillingOptions): Promise<BillingService> {
  const { databaseUrl, files = {}, settings = {}, clock = systemClock, gateway = notThere } = options;
  await using stack = new AsyncDisposableStack();
  const issuer = stack.use(await startTokenIssuer(gateway));
  const directory = await mkdtemp(join(inject('temporaryDirectory'), 'billing-'));
  const keys = [{ id: 'one', key: randomBytes(32).toString('base64') }];
  const written = await Promise.all(
    Object.entries({ ROLLCALL_VAULT_KEYS_FILE: { keys }, ...files }).map(async ([name, content]) => {
      const file = join(directory, name);
      await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content));
      return [name, file] as const;
    }),
  );
  const all = {
    ROLLCALL_DATABASE_URL: databaseUrl,
    ROLLCALL_GATEWAY_KEYS_URL: issuer.jwksUrl,
    ROLLCALL_PUBLIC_URL: 'http://127.0.0.1:9',
    ...Object.fromEntries(written),
    ...settings,
  };
  const place = { logDirectory: inject('temporaryDirectory'), access: {}, namespace: 'none', settings: all };
  const service = stack.use(await startService(paymentProcess, { ...place, clock }));
  const kept = stack.move();
  return {
    service,
    startProcess: () => startReadyReplica(SCRIPT, place),
    supervise: () => supervise(SCRIPT, place),
    async callerOf(subject, scope = 'billing:write billing:read', url = service.url) {
      return caller(url, await issuer.tokenOf(subject, scope));
    },
    tokenOf: (subject, scope) => issuer.tokenOf(subject, scope),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

const notThere: RequestListener = (_request, response) => void response.writeHead(404).end();

function caller(url: string, token: string): Caller {
  const call = async ({ method, path, body, text, headers = {} }: Call): Promise<Answer> => {
    const sent = text ?? (body === undefined ? undefined : JSON.stringify(body));
    const response = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(sent === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(sent === undefined ? {} : { body: sent }),
    });
    const answer = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(answer) : undefined };
  };
  return {
    call,
    get: (path) => call({ method: 'GET', path }),
    post: (path, body, key) =>
      call({ method: 'POST', path, body, headers: key === undefined ? {} : { 'idempotency-key': key } }),
    patch: (path, body) => call({ method: 'PATCH', path, body }),
    delete: (path) => call({ method: 'DELETE', path }),
    bytes: (path) => fetch(`${url}/api/v1${path}`, { headers: { authorization: `Bearer ${token}` } }),
  };
}

/** The id of what an answer has. */
export function idOf({ body }: Answer): string {
  const id = body?.['id'];
  if (typeof id !== 'string') throw new Error(`The answer has no id: ${JSON.stringify(body)}`);
  return id;
}

/** Faults of a request by path; each has a message. */
export function faultsOf({ status, body }: Answer): readonly string[] {
  const { error } = body as { error: { code: string; details: { fields: { path: string; message: string }[] } } };
  if (status !== 422 && (status !== 400 || error.code !== 'INVALID_REQUEST'))
    throw new Error(`It was not refused so: ${error.code}`);
  return [...new Set(error.details.fields.map(({ path }) => path))].sort();
}

/** The code of a refusal. */
export function codeOf({ body }: Answer): unknown {
  const { error } = body as { error?: { code: string } };
  return error?.code;
}

/** A connection to the tables of payment. */
export async function connectTo(databaseUrl: string): Promise<Client & AsyncDisposable> {
  const client = new Client({ connectionString: databaseUrl, options: '-c search_path=payment' });
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

/** A seller that is registered for VAT in South Africa. */
export const sellers: Readonly<Record<string, unknown>> = {
  ROLLCALL_SELLERS_FILE: {
    sellers: [
      { name: 'Kettle (Pty) Ltd', address: ['1 Long Street', 'Cape Town'], country: 'ZA', vatNumber: '4123456789' },
    ],
  },
};

/** A provider without money, whose page decides at once. */
export const sandbox = {
  files: {
    ...sellers,
    ROLLCALL_PROVIDERS_FILE: {
      default: 'sandbox',
      providers: { sandbox: { secret: `whsec_${randomBytes(24).toString('base64')}` } },
    },
  },
  settings: { ROLLCALL_MODE: 'trial' },
};

/** A clock that stands until it is set. */
export interface TestClock extends Clock {
  set(at: string | Temporal.Instant): void;
}

export function clockAt(start: string): TestClock {
  let nowMs = Temporal.Instant.from(start).epochMilliseconds;
  return {
    now: () => new Date(nowMs),
    monotonicMs: () => performance.now(),
    set(at) {
      nowMs = Temporal.Instant.from(at).epochMilliseconds;
    },
  };
}

/** Does what a payer does at the page of the sandbox. */
export async function decide(billing: BillingService, paymentUrl: unknown, decision: string): Promise<void> {
  const { pathname } = new URL(String(paymentUrl));
  const response = await fetch(`${billing.service.url}${pathname}`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: `decision=${decision}`,
    redirect: 'manual',
  });
  if (response.status !== 303) throw new Error(`The page answered ${response.status}`);
}
