import { utf8Text } from '@rollcall/platform/http/body-text.ts';
import { isDecodable } from '@rollcall/platform/http/request-head.ts';
import { hasScope, isScopeToken } from '@rollcall/platform/http/scopes.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import type { Limit } from '@rollcall/platform/limits/rate-limiter.ts';
import { type ConcurrencyLimiter, createConcurrencyLimiter } from '@rollcall/platform/queues/concurrency-limiter.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { RouteLimits } from '../admission/limit-for.ts';
import type { Limits, Verdict } from '../admission/limits.ts';
import { GatewayError } from '../errors.ts';
import type { AccessTokens } from '../identity/access-tokens.ts';
import type { ApiClients, KnownClient } from '../identity/api-clients.ts';
import { TOKEN_MAX_LENGTH } from '../identity/authenticator.ts';
import { createSecretChecks } from '../identity/client-secret.ts';
import type { KeyStore } from '../identity/key-store.ts';
import { exchangeToken, TOKEN_EXCHANGE, type TokenExchangeDeps } from './token-exchange.ts';
import { type Credentials, credentialsOf, OAuthError, oauthErrorBody, TOKEN_PATH } from './token-request.ts';

export interface TokenRouteDeps extends TokenExchangeDeps {
  readonly tokens: Pick<AccessTokens, 'issue'>;
  readonly clients: Pick<ApiClients, 'find'>;
  readonly keys: Pick<KeyStore, 'fingerprintKey'>;
  readonly limits: Pick<Limits, 'check'>;
}

const BODY_LIMIT_BYTES = 8192;
/** A grant knows seven at most; unknown ones are ignored (RFC 6749, section 3.2). */
const MOST_PARAMETERS = 64;
/** Of an id that nobody has checked. */
const LOGGED_ID_LENGTH = 128;
const FORM = 'application/x-www-form-urlencoded';
/**
 * Checks that may wait, for one at a time: each keeps the one thread for them busy for some 100 ms.
 */
const CHECKS_WAITING = { ofClients: 200, ofStrangers: 20 };
const WINDOW_MS = 60_000;
/** Of one client, wherever it is. */
const TOKENS_A_MINUTE = { requests: 60, windowMs: WINDOW_MS };
/** Of one client: a service exchanges for all who call it, for each service behind it. */
const EXCHANGES_A_MINUTE = { requests: 120_000, windowMs: WINDOW_MS };
/** Of one client id, from one address. */
const FAILURES_A_MINUTE = { requests: 20, windowMs: WINDOW_MS };
const SUCCESSES = ofEveryTier('auth.token', TOKENS_A_MINUTE);
const EXCHANGES = ofEveryTier('auth.exchange', EXCHANGES_A_MINUTE);
const FAILURES: RouteLimits = { route: 'auth.failures', limits: { anonymous: FAILURES_A_MINUTE } };

function ofEveryTier(route: string, limit: Limit): RouteLimits {
  return { route, limits: { premium: limit, standard: limit, free: limit } };
}

/**
 * `POST /api/v1/auth/token`: the client credentials grant (RFC 6749, section 4.4) and the token
 * exchange (RFC 8693), the client authenticated by HTTP Basic or by `client_id` and `client_secret`
 * in the form. All of its errors are in the RFC's shape, which OAuth libraries read.
 *
 * No stranger can use up what a client needs. Tokens and exchanges are counted by client, failures by client id
 * and address, and a secret that is known to be right is neither counted as a failure nor waits for
 * the check of another one.
 */
export function tokenRoute(app: App, deps: TokenRouteDeps): void {
  const answer = createAnswering(deps);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(FORM, { parseAs: 'buffer', bodyLimit: BODY_LIMIT_BYTES }, (_request, body: Buffer, done) =>
    done(null, utf8Text(body)),
  );
  // Of refusals, too, before the route has its turn.
  app.addHook('onRequest', async (_request, reply) => void reply.header('cache-control', 'no-store'));
  app.addHook('preSerialization', async (request, reply, payload) => {
    if (reply.statusCode < 400) return payload;
    const body = oauthErrorBody(reply.statusCode, payload);
    if (request.accessFields !== undefined) request.accessFields.code = body.error;
    return body;
  });
  app.post(TOKEN_PATH, async (request, reply) => {
    try {
      return await answer(request, reply);
    } catch (err) {
      if (!(err instanceof OAuthError)) throw err;
      if (err.status === 401) reply.header('www-authenticate', 'Basic realm="rollcall"');
      return reply.status(err.status).send({ error: err.error, error_description: err.message });
    }
  });
}

type Answering = (request: FastifyRequest, reply: FastifyReply) => Promise<object>;

function createAnswering(deps: TokenRouteDeps): Answering {
  const authenticate = createAuthentication(deps);
  const grants: ReadonlyMap<string, Grant> = new Map([
    ['client_credentials', { limits: SUCCESSES, answer: (client, form) => issueToken(deps, client, form) }],
    [TOKEN_EXCHANGE, { limits: EXCHANGES, answer: (client, form) => exchangeToken(deps, client, form) }],
  ]);
  return async (request, reply) => {
    const form = parseForm(request.body);
    const credentials = credentialsOf(request.headers.authorization, form);
    const { accessFields } = request;
    if (accessFields !== undefined) accessFields.client = credentials[0]?.id.slice(0, LOGGED_ID_LENGTH);
    const grantType = form.get('grant_type');
    const known = [...grants.keys()].join(' or ');
    if (grantType === null) throw new OAuthError('invalid_request', `Give the grant_type ${known}`);
    const grant = grants.get(grantType);
    if (grant === undefined) throw new OAuthError('unsupported_grant_type', `The grant_type is ${known}`);
    return grant.answer(await authenticate(credentials, { request, reply, limits: grant.limits }), form);
  };
}

interface Grant {
  /** For clients that have authenticated. */
  readonly limits: RouteLimits;
  readonly answer: (client: KnownClient, form: URLSearchParams) => Promise<object>;
}

async function issueToken({ tokens }: Pick<TokenRouteDeps, 'tokens'>, client: KnownClient, form: URLSearchParams) {
  const asked = (form.get('scope') ?? '').split(' ').filter((scope) => scope !== '');
  if (!asked.every(isScopeToken)) {
    const rule = 'A scope is of printable ASCII without double quotes and backslashes; spaces separate scopes';
    throw new OAuthError('invalid_scope', rule);
  }
  if (!asked.every((scope) => hasScope({ scopes: new Set(client.scopes) }, scope))) {
    throw new OAuthError('invalid_scope', 'The client does not have every scope that it asks for');
  }
  const scopes = asked.length === 0 ? client.scopes : [...new Set(asked)];
  const { token, expiresInSeconds } = await tokens.issue(client, scopes);
  if (token.length > TOKEN_MAX_LENGTH) {
    throw new OAuthError('invalid_scope', 'A token with so many scopes would be too long: ask for fewer');
  }
  return { access_token: token, token_type: 'Bearer', expires_in: expiresInSeconds, scope: scopes.join(' ') };
}

function parseForm(body: unknown): URLSearchParams {
  const text = typeof body === 'string' ? body : '';
  if (!isDecodable(text)) {
    throw new OAuthError('invalid_request', 'The form must be of percent-encoded UTF-8: send a percent sign as %25');
  }
  const form = new URLSearchParams(text);
  if (form.size > MOST_PARAMETERS) throw new OAuthError('invalid_request', 'There are too many parameters');
  if (new Set(form.keys()).size < form.size) throw new OAuthError('invalid_request', 'A parameter is given twice');
  // What has no value counts as left out (section 3.2).
  return new URLSearchParams([...form].filter(([, value]) => value !== ''));
}

interface Asking {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly limits: RouteLimits;
}

function createAuthentication({ clients, keys, limits }: TokenRouteDeps) {
  const secrets = createSecretChecks();
  // Ids that nobody has can be made up without end: what waits for theirs waits apart.
  const checks = {
    ofClients: oneByOne(CHECKS_WAITING.ofClients),
    ofStrangers: oneByOne(CHECKS_WAITING.ofStrangers),
  };

  async function check({ request, reply }: Asking, counted: Pick<LimitedBy, 'caller' | 'route' | 'claimed'>) {
    const { socket, headers } = request;
    const from = { remoteAddress: socket.remoteAddress, forwardedFor: headers['x-forwarded-for'] };
    const { refusal, headers: limitHeaders }: Verdict = await limits.check({ ...from, ...counted });
    reply.headers(limitHeaders);
    if (refusal !== undefined) throw refusal;
  }

  async function isRight(client: KnownClient | undefined, presented: readonly Credentials[]): Promise<boolean> {
    const limiter = client === undefined ? checks.ofStrangers : checks.ofClients;
    for (const { id, secret } of presented) {
      if (await limiter.run(id, () => secrets.verify(secret, client?.secret, keys.fingerprintKey()))) return true;
    }
    return false;
  }

  return async (presented: readonly Credentials[], asking: Asking): Promise<KnownClient> => {
    const client = presented.map(({ id }) => clients.find(id)).find((found) => found !== undefined);
    const key = keys.fingerprintKey();
    if (!presented.some(({ secret }) => secrets.isKnown(secret, client?.secret, key))) {
      await check(asking, { caller: undefined, route: FAILURES, claimed: presented[0]?.id });
      if (!(await isRight(client, presented))) {
        throw new OAuthError('invalid_client', 'Client id or secret is wrong');
      }
    }
    if (client === undefined) throw new OAuthError('invalid_client', 'Client id or secret is wrong');
    await check(asking, { caller: { subject: client.clientId, tier: client.tier }, route: asking.limits });
    return client;
  };
}

type LimitedBy = Parameters<Limits['check']>[0];

/** One check at a time; ids take turns. */
function oneByOne(maxWaiting: number): ConcurrencyLimiter {
  return createConcurrencyLimiter({ most: 1, capacity: 1 + maxWaiting, refuse: busy });
}

function busy(): GatewayError {
  return new GatewayError('TOO_MANY_CONNECTIONS');
}
