import { utf8Text } from '@rollcall/platform/http/body-text.ts';
import { isDecodableQuery } from '@rollcall/platform/http/request-head.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { hasScope } from '../admission/caller.ts';
import type { Limits } from '../admission/limits.ts';
import { GatewayError } from '../errors.ts';
import type { AccessTokens } from '../identity/access-tokens.ts';
import type { ApiClients } from '../identity/api-clients.ts';
import { verifySecret } from '../identity/client-secret.ts';
import type { KeyStore } from '../identity/key-store.ts';

export interface TokenRouteDeps {
  readonly tokens: Pick<AccessTokens, 'issue'>;
  readonly clients: Pick<ApiClients, 'find'>;
  readonly keys: Pick<KeyStore, 'fingerprintKey'>;
  readonly limits: Pick<Limits, 'check'>;
}

const BODY_LIMIT_BYTES = 8192;
/** The grant knows four; those that nobody knows are ignored (RFC 6749, section 3.2). */
const MOST_PARAMETERS = 64;
/** Of an id that nobody has checked. */
const LOGGED_ID_LENGTH = 128;
const FORM = 'application/x-www-form-urlencoded';
/** Checks at once: each takes a thread for some 100 ms and 16 MiB, and DNS needs these threads too. */
const CHECKS_AT_ONCE = 2;
const CHECKS_WAITING = 200;
const ROUTE_LIMITS = { route: 'auth.token', limits: { anonymous: { requests: 60, windowMs: 60_000 } } };

/** The errors of RFC 6749, section 5.2, with their statuses. */
type OAuthError = 'invalid_request' | 'invalid_client' | 'unsupported_grant_type' | 'invalid_scope';

/**
 * `POST /api/v1/auth/token`: the client credentials grant (RFC 6749, section 4.4), the client authenticated by HTTP Basic or by
 * `client_id` and `client_secret` in the form. Its errors are those of the RFC, which OAuth libraries read, in place of the
 * gateway's.
 */
export function tokenRoute(app: App, deps: TokenRouteDeps): void {
  const { limits } = deps;
  const checks = createQueue(CHECKS_AT_ONCE, CHECKS_WAITING);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(FORM, { parseAs: 'buffer', bodyLimit: BODY_LIMIT_BYTES }, (_request, body: Buffer, done) =>
    done(null, utf8Text(body)),
  );
  app.post('/api/v1/auth/token', async (request, reply) => {
    const { refusal, headers } = await limits.check({
      caller: undefined,
      remoteAddress: request.socket.remoteAddress,
      forwardedFor: request.headers['x-forwarded-for'],
      route: ROUTE_LIMITS,
    });
    reply.headers(headers).header('cache-control', 'no-store');
    if (refusal !== undefined) throw refusal;
    return grant(deps, { request, reply, checks });
  });
}

interface Asked {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly checks: Queue;
}

async function grant({ tokens, clients, keys }: TokenRouteDeps, { request, reply, checks }: Asked): Promise<unknown> {
  const text = typeof request.body === 'string' ? request.body : '';
  const form = new URLSearchParams(text);
  const refuse = (status: number, error: OAuthError, description: string) => {
    if (status === 401) reply.header('www-authenticate', 'Basic realm="rollcall"');
    if (request.told !== undefined) request.told.code = error;
    return reply.status(status).send({ error, error_description: description });
  };
  if (!isDecodableQuery(text)) return refuse(400, 'invalid_request', 'The form must be of percent-encoded UTF-8');
  if (form.size > MOST_PARAMETERS) return refuse(400, 'invalid_request', 'There are too many parameters');
  if (new Set(form.keys()).size < form.size) return refuse(400, 'invalid_request', 'A parameter is given twice');
  const credentials = credentialsOf(request.headers.authorization, form);
  const { told } = request;
  if (told !== undefined) told.client = credentials?.id.slice(0, LOGGED_ID_LENGTH);
  if (credentials === undefined) return refuse(401, 'invalid_client', 'Client id and secret are required');
  if (form.get('grant_type') !== 'client_credentials') {
    return refuse(400, 'unsupported_grant_type', 'The only grant_type is client_credentials');
  }
  const client = clients.find(credentials.id);
  const isKnown = await checks.run(() => verifySecret(credentials.secret, client?.secret, keys.fingerprintKey()));
  if (!isKnown || client === undefined) return refuse(401, 'invalid_client', 'Client id or secret is wrong');
  const asked = (form.get('scope') ?? '').split(' ').filter((scope) => scope !== '');
  if (!asked.every((scope) => hasScope({ scopes: new Set(client.scopes) }, scope))) {
    return refuse(400, 'invalid_scope', 'The client does not have every scope that it asks for');
  }
  const scopes = asked.length === 0 ? client.scopes : [...new Set(asked)];
  const { token, expiresInSeconds } = await tokens.issue(client, scopes);
  return { access_token: token, token_type: 'Bearer', expires_in: expiresInSeconds, scope: scopes.join(' ') };
}

interface Credentials {
  readonly id: string;
  readonly secret: string;
}

/** RFC 6749, section 2.3.1: form-encoded in HTTP Basic, or in the body; not both. */
function credentialsOf(authorization: string | undefined, form: URLSearchParams): Credentials | undefined {
  const [id, secret] = [form.get('client_id'), form.get('client_secret')];
  if (authorization === undefined) return id === null || secret === null ? undefined : { id, secret };
  const [, encoded] = /^Basic ([A-Za-z0-9+/=]+)$/i.exec(authorization) ?? [];
  if (encoded === undefined || secret !== null) return undefined;
  const text = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = text.indexOf(':');
  if (colon === -1) return undefined;
  const basic = { id: formDecoded(text.slice(0, colon)), secret: formDecoded(text.slice(colon + 1)) };
  return id === null || id === basic.id ? basic : undefined;
}

/** Many clients do not encode: what is no encoding stands for itself. */
function formDecoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return text;
  }
}

interface Queue {
  /** @throws GatewayError TOO_MANY_CONNECTIONS when too many wait. */
  run<T>(task: () => Promise<T>): Promise<T>;
}

function createQueue(atOnce: number, maxWaiting: number): Queue {
  const waiting: (() => void)[] = [];
  let running = 0;
  return {
    async run(task) {
      if (running >= atOnce) {
        if (waiting.length >= maxWaiting)
          throw new GatewayError('TOO_MANY_CONNECTIONS', { headers: { 'retry-after': '1' } });
        await new Promise<void>((resolve) => {
          waiting.push(resolve);
        });
      } else {
        running += 1;
      }
      try {
        return await task();
      } finally {
        const next = waiting.shift();
        if (next === undefined) running -= 1;
        else next();
      }
    },
  };
}
