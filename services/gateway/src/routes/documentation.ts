import swagger from '@fastify/swagger';
import { documentationPage } from '@rollcall/platform/http/documentation-page.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import type { FastifySchema } from 'fastify';
import type { AccessLog } from '../access-log.ts';
import { type ErrorCode, errorCatalogue } from '../errors.ts';
import { logRequests } from './request-log.ts';
import { TOKEN_EXCHANGE } from './token-exchange.ts';

const text = { type: 'string' };
const count = { type: 'integer', minimum: 0 };

function objectOf(properties: object): object {
  return { type: 'object', required: Object.keys(properties), properties };
}

function answer(description: string, schema: object, type = 'application/json'): object {
  return { description, content: { [type]: { schema } } };
}

const errorBody = objectOf({ error: objectOf({ code: text, message: text, details: { type: 'object' } }) });
/** RFC 6749, section 5.2. */
const oauthError = (description: string) => answer(description, objectOf({ error: text, error_description: text }));

/** @returns the answers to what is refused so, by status. */
function refusals(...codes: readonly ErrorCode[]): Record<string, object> {
  const byStatus = Map.groupBy(codes, (code) => errorCatalogue[code].status);
  return Object.fromEntries(
    [...byStatus].map(([status, each]) => [status, answer(each.map(sentenceOf).join(' '), errorBody)]),
  );
}

function sentenceOf(code: ErrorCode): string {
  return `${code}: ${errorCatalogue[code].message}.`;
}

const bearer = [{ bearer: [] }];
const admitted = refusals(
  'INVALID_REQUEST',
  'UNAUTHENTICATED',
  'INVALID_TOKEN',
  'RATE_LIMITED',
  'IDENTITY_UNAVAILABLE',
);
const health = objectOf({ status: { enum: ['healthy', 'unhealthy'] }, version: text, uptime: count });
const form = {
  grant_type: { enum: ['client_credentials', TOKEN_EXCHANGE] },
  scope: text,
  client_id: text,
  client_secret: text,
  subject_token: text,
  subject_token_type: text,
  audience: text,
};

/** What the gateway answers itself; all else goes to services. Nothing here is enforced: the routes check for themselves. */
const operations: Readonly<Record<string, FastifySchema>> = {
  'GET /': {
    summary: 'Where to go',
    response: { 200: answer('Paths, by what they are for', { type: 'object', additionalProperties: text }) },
  },
  'GET /api/health': {
    summary: 'Whether this replica can serve; uptime in seconds',
    response: { 200: answer('It can', health), 503: answer('It starts', health) },
  },
  'GET /.well-known/jwks.json': {
    summary: 'Public keys of access tokens and identities (RFC 7517)',
    response: { 200: answer('The keys', objectOf({ keys: { type: 'array' } }), 'application/jwk-set+json') },
  },
  'POST /api/v1/auth/token': {
    summary: 'An access token, by client credentials (RFC 6749, section 4.4); or an identity by exchange (RFC 8693)',
    description:
      'The client authenticates by HTTP Basic, or by client_id and client_secret in the form. With the scope ' +
      'identities:exchange it gets an identity at another service for the one that was shown to it.',
    security: [{ client: [] }, {}],
    consumes: ['application/x-www-form-urlencoded'],
    body: { type: 'object', required: ['grant_type'], properties: form },
    response: {
      200: answer('It', {
        anyOf: [
          objectOf({ access_token: text, token_type: { const: 'Bearer' }, expires_in: count, scope: text }),
          objectOf({ access_token: text, issued_token_type: text, token_type: { const: 'N_A' }, expires_in: count }),
        ],
      }),
      400: oauthError('The request is not valid, or the client may not have what it asks for'),
      401: oauthError('Client id or secret is wrong'),
      429: oauthError('Too many tokens, or failures, a minute; try again after the time in Retry-After'),
      503: oauthError('Too many secrets wait to be checked; try again'),
    },
  },
  'GET /api/metrics': {
    summary: 'Metrics of this replica, in the text format of Prometheus',
    security: bearer,
    response: { 200: answer('They', text, 'text/plain'), ...admitted, ...refusals('INSUFFICIENT_SCOPE') },
  },
  'GET /api/ws': {
    summary: 'WebSockets: events of registrations and jobs; see asyncapi.json',
    security: bearer,
    response: { 101: { description: 'A WebSocket', type: 'null' }, ...admitted, ...refusals('UPGRADE_REQUIRED') },
  },
  'GET /api/graphiql': {
    summary: 'The graph of all services, for people, by GraphiQL',
    response: { 200: answer('The page', text, 'text/html') },
  },
  'GET /api/ws/asyncapi.json': {
    summary: 'The AsyncAPI document of WebSockets',
    security: bearer,
    response: { 200: answer('It', { type: 'object' }), ...admitted },
  },
};

/**
 * The OpenAPI document of the gateway itself at `/api/openapi.json`, and at `/api/docs` a page that
 * shows it and the registry's. Registered before the routes, so that it sees them.
 */
export async function documentation(app: App, version: string, accessLog: AccessLog | undefined): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Rollcall gateway',
        version,
        description: 'What the gateway answers itself. All else goes to services.',
      },
      components: {
        securitySchemes: { bearer: { type: 'http', scheme: 'bearer' }, client: { type: 'http', scheme: 'basic' } },
      },
    },
    transform: ({ url, route }) => ({ url, schema: operations[`${String(route.method)} ${url}`] ?? { hide: true } }),
  });
  const urls = [
    { name: 'gateway', url: '/api/openapi.json' },
    { name: 'registry', url: '/api/v1/registry/openapi.json' },
  ];
  await app.register(
    async (scope) => {
      const api = scope as App;
      logRequests(api, accessLog);
      api.get('/openapi.json', () => app.swagger());
      await documentationPage(api, '/docs', { uiConfig: { urls } });
    },
    { prefix: '/api' },
  );
}
