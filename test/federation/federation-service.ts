import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { federationProcess } from '@rollcall/federation/service.ts';
import { identityHeaders } from '@rollcall/platform/http/identity.ts';
import { inject, onTestFinished } from 'vitest';
import { startIdentityIssuer } from '../support/identity-issuer.ts';
import { createDatabase } from '../support/postgres.ts';
import { type Answer, type RunningService, startService } from '../support/replica.ts';

interface Call {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** @param path relative to `/api`. */
export type Caller = (method: string, path: string, call?: Call) => Promise<Answer & { readonly text: string }>;

export interface Federation {
  readonly service: RunningService;
  readonly databaseUrl: string;
  /** Who may read and write schemas. */
  readonly call: Caller;
  /** @param scope undefined: without credentials. */
  readonly callerOf: (scope: string | undefined) => Promise<Caller>;
  /** An access token of the gateway. */
  readonly tokenOf: (scope: string, of?: TokenOptions) => Promise<string>;
  /** Starts another replica on the same database. */
  readonly another: (settings?: Readonly<Record<string, string>>) => Promise<Federation>;
  /** Executes an operation, as anybody may. */
  readonly query: (text: string, variables?: object) => Promise<GraphqlAnswer>;
}

interface TokenOptions {
  readonly subject?: string;
  /** Such as `2 seconds`. */
  readonly lasts?: string;
}

export interface GraphqlAnswer {
  readonly data?: Readonly<Record<string, unknown>> | null;
  readonly errors?: readonly {
    readonly message: string;
    readonly path?: readonly unknown[];
    readonly extensions?: object;
  }[];
}

/** Settings with which federation is that client of the gateway. */
export async function asClient({ id, secret }: { readonly id: string; readonly secret: string }) {
  const path = join(inject('temporaryDirectory'), `client-${randomUUID()}`);
  await writeFile(path, `${secret}\n`);
  return { ROLLCALL_CLIENT_ID: id, ROLLCALL_CLIENT_SECRET_FILE: path };
}

/** Starts federation in this process, with a database of its own, until the test is over. */
export async function startFederation(settings: Readonly<Record<string, string>> = {}): Promise<Federation> {
  const database = await createDatabase();
  onTestFinished(() => database[Symbol.asyncDispose]());
  const issuer = await startIdentityIssuer('federation');
  onTestFinished(() => issuer[Symbol.asyncDispose]());
  const all = { ROLLCALL_DATABASE_URL: database.url, ROLLCALL_GATEWAY_KEYS_URL: issuer.jwksUrl, ...settings };
  return replica(all);

  async function replica(own: Readonly<Record<string, string>>): Promise<Federation> {
    const service = await startService(federationProcess, {
      logDirectory: inject('temporaryDirectory'),
      access: {},
      namespace: 'none',
      settings: own,
    });
    onTestFinished(() => service[Symbol.asyncDispose]());
    const callerOf = async (scope: string | undefined): Promise<Caller> => {
      const identity = scope === undefined ? undefined : await issuer.identityOf('anna', scope);
      return (method, path, call = {}) => callAs(`${service.url}/api${path}`, { method, identity, ...call });
    };
    const anybody = await callerOf(undefined);
    return {
      service,
      databaseUrl: database.url,
      callerOf,
      tokenOf: (scope, { subject = 'anna', lasts } = {}) => issuer.tokenOf(subject, scope, lasts),
      call: await callerOf('schemas:read schemas:write'),
      another: (more = {}) => replica({ ...all, ...more }),
      async query(text, variables) {
        const { body } = await anybody('POST', '/graphql', { body: { query: text, variables } });
        return body as GraphqlAnswer;
      },
    };
  }
}

interface CalledAs extends Call {
  readonly method: string;
  readonly identity: string | undefined;
}

async function callAs(url: string, { method, identity, body, headers = {} }: CalledAs) {
  const response = await fetch(url, {
    method,
    headers: {
      ...(identity === undefined ? {} : { [identityHeaders.token]: identity }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = /^application\/[a-z-]*\+?json/.test(response.headers.get('content-type') ?? '');
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: isJson && text !== '' ? JSON.parse(text) : undefined,
  };
}

/** The code of a refusal. */
export function codeOf({ body }: Answer): string {
  return (body as { error: { code: string } }).error.code;
}

/** The status of each known schema, by service. */
export async function statusesOf(call: Caller): Promise<Record<string, string>> {
  const { body } = await call('GET', '/schemas');
  const { schemas } = body as { schemas: readonly { service: string; status: string }[] };
  return Object.fromEntries(schemas.map(({ service, status }) => [service, status]));
}
