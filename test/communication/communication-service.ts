import { randomBytes } from 'node:crypto';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { communicationProcess } from '@rollcall/communication/service.ts';
import { identityHeaders } from '@rollcall/platform/http/identity.ts';
import { inject } from 'vitest';
import { startIdentityIssuer } from '../support/identity-issuer.ts';
import { type Answer, type RunningService, startService } from '../support/replica.ts';

const ALL_SCOPES = 'messages:send messages:read templates:write suppressions:write';

interface Call {
  readonly body?: unknown;
  /** Sent as it is, in place of the body. */
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Calls of one subject. @param path relative to `/api/v1`. */
export type Caller = (method: string, path: string, call?: Call) => Promise<Answer>;

export interface CommunicationService extends AsyncDisposable {
  readonly service: RunningService;
  /** Settings of another replica. */
  readonly settings: Readonly<Record<string, string>>;
  /** @param scope those of every operation when absent. @param url of another replica. */
  callerOf(subject: string, scope?: string, url?: string): Promise<Caller>;
  /** By which the gateway says who calls. @param scope those of every operation when absent. */
  identityOf(subject: string, scope?: string): Promise<string>;
}

export interface CommunicationOptions {
  readonly databaseUrl: string;
  /** Of a vault; a new one when absent. */
  readonly keys?: readonly { readonly id: string; readonly key: string }[];
  readonly settings?: Readonly<Record<string, string>>;
}

/** Starts communication in this process, with callers of a gateway that is not there. */
export async function startCommunication(options: CommunicationOptions): Promise<CommunicationService> {
  const { databaseUrl, settings = {} } = options;
  await using stack = new AsyncDisposableStack();
  const issuer = stack.use(await startIdentityIssuer('communication'));
  const directory = await mkdtemp(join(inject('temporaryDirectory'), 'communication-'));
  const keysFile = join(directory, 'vault-keys.json');
  const { keys = [newVaultKey()] } = options;
  await writeFile(keysFile, JSON.stringify({ keys }));
  const all = {
    ROLLCALL_DATABASE_URL: databaseUrl,
    ROLLCALL_GATEWAY_KEYS_URL: issuer.jwksUrl,
    ROLLCALL_PUBLIC_URL: 'https://gateway.example',
    ROLLCALL_VAULT_KEYS_FILE: keysFile,
    ...settings,
  };
  const service = stack.use(
    await startService(communicationProcess, {
      logDirectory: inject('temporaryDirectory'),
      access: {},
      namespace: 'none',
      settings: all,
    }),
  );
  const kept = stack.move();
  return {
    service,
    settings: all,
    async callerOf(subject, scope = ALL_SCOPES, url = service.url) {
      const identity = await issuer.identityOf(subject, scope);
      return (method, path, call = {}) => callAs(`${url}/api/v1${path}`, { method, identity, ...call });
    },
    identityOf: (subject, scope = ALL_SCOPES) => issuer.identityOf(subject, scope),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

function newVaultKey(id = randomBytes(4).toString('hex')): { readonly id: string; readonly key: string } {
  return { id, key: randomBytes(32).toString('base64') };
}

interface CalledAs extends Call {
  readonly method: string;
  readonly identity: string;
}

async function callAs(url: string, { method, identity, body, text, headers = {} }: CalledAs): Promise<Answer> {
  const sent = text ?? (body === undefined ? undefined : JSON.stringify(body));
  const response = await fetch(url, {
    method,
    headers: {
      [identityHeaders.token]: identity,
      ...(sent === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(sent === undefined ? {} : { body: sent }),
  });
  const answer = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(answer) : undefined };
}

/** The paths that a refusal names, in order. */
export function faultPaths({ body }: Answer): string[] {
  const { error } = body as { error: { details: { fields?: { path: string }[] } } };
  return (error.details.fields ?? []).map(({ path }) => path).sort();
}

/** The code of a refusal. */
export function codeOf({ body }: Answer): string {
  return (body as { error: { code: string } }).error.code;
}
