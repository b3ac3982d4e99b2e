import swagger from '@fastify/swagger';
import type { ErrorKind } from '@rollcall/platform/errors.ts';
import { documentationPage } from '@rollcall/platform/http/documentation-page.ts';
import { serverErrors } from '@rollcall/platform/http/errors.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import type { FastifySchema, RouteOptions } from 'fastify';
import { type ErrorCode, errorCatalogue } from '../common/errors.ts';
import { completed, documented } from './documented.ts';
import { components, named } from './schemas.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the route refuses or cannot do beside what any route does, for the OpenAPI document. */
    refusals?: readonly ErrorCode[];
  }
}

/** From any place at which the document is read: `/api/v1/openapi.json` here, below another prefix behind the gateway. */
const BESIDE_DOCUMENT = [{ url: '.' }];
/** The page reads it at `docs/json`. */
const ABOVE_PAGE = [{ url: '..' }];

/**
 * OpenAPI 3.1 from the route schemas, and a page that shows it. Registered before the routes, so
 * that it sees them.
 */
export async function documentation(app: App, version: string): Promise<void> {
  const { prefix } = app;
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Rollcall registry',
        version,
        description: 'Service registration, discovery, update history and delivery webhooks.',
      },
      components: {
        schemas: components,
        securitySchemes: {
          bearer: {
            type: 'http',
            scheme: 'bearer',
            description: 'The token of a service account; at the gateway that of one of its clients',
          },
        },
      },
      tags: [
        { name: 'services', description: 'Registration, discovery, heartbeats' },
        { name: 'updates', description: 'Update history, statistics and export' },
        { name: 'webhooks', description: 'Calls from pipelines and services' },
        { name: 'jobs', description: 'Delivery jobs' },
        { name: 'health', description: 'The registry itself' },
      ],
    },
    transform: ({ schema, url, route }) => ({ schema: documentedSchema(schema, route), url: url.slice(prefix.length) }),
    transformObject: (document) => ({
      ...completed('openapiObject' in document ? document.openapiObject : document.swaggerObject),
      servers: BESIDE_DOCUMENT,
    }),
  });
  await documentationPage(app, '/docs', {
    transformSpecification: (document) => ({ ...document, servers: ABOVE_PAGE }),
  });
}

/** `/api/v1/openapi.json`. */
export function openApiRoute(app: App): void {
  app.get('/openapi.json', { schema: { hide: true }, config: { access: 'public' }, compress: {} }, () => app.swagger());
}

/** The schema of a route with all that it may answer, and whether it asks who calls. */
function documentedSchema(schema: FastifySchema, { config, method }: RouteOptions): FastifySchema {
  if (schema.hide === true) return schema;
  const { access, refusals = [] } = config ?? {};
  const { response } = schema;
  return {
    ...schema,
    ...(access === 'public' ? {} : { security: [{}, { bearer: [] }] }),
    response: {
      ...(typeof response === 'object' ? response : {}),
      ...refusalResponses([
        ...serverRefusals(method !== 'GET'),
        ...[...(access === 'public' ? [] : CREDENTIALS), ...refusals].map((code) => errorCatalogue[code]),
      ]),
    },
  };
}

/** What any route refuses that asks who calls, and by which way. */
const CREDENTIALS: readonly ErrorCode[] = [
  'INVALID_REQUEST',
  'UNAUTHENTICATED',
  'ADMITTED_FOR_ANOTHER',
  'INSUFFICIENT_SCOPE',
  'STORE_UNAVAILABLE',
  'GATEWAY_KEYS_UNAVAILABLE',
];

/** What every server answers by itself where the path is that of a route. */
function serverRefusals(hasBody: boolean): readonly ErrorKind[] {
  const { PATH_NOT_FOUND: _none, TOO_LARGE, UNSUPPORTED_TYPE, ...others } = serverErrors;
  return [...Object.values(others), ...(hasBody ? [TOO_LARGE, UNSUPPORTED_TYPE] : [])];
}

const RETRY_AFTER = { 'Retry-After': { type: 'string', pattern: '^[0-9]+$', description: 'Seconds, where it passes' } };
const FIELDS: Readonly<Record<number, object>> = {
  401: { 'WWW-Authenticate': { type: 'string' } },
  405: { Allow: { type: 'string', description: 'The methods that the path has, whichever operations they are of' } },
  409: RETRY_AFTER,
  429: RETRY_AFTER,
  503: RETRY_AFTER,
};

function refusalResponses(refusals: readonly ErrorKind[]): Record<string, object> {
  const byStatus = Map.groupBy(refusals, ({ status }) => status);
  const responses = [...byStatus].map(([status, each]) => {
    const sentences = new Set(each.map(({ error, message }) => `${error}: ${message}.`));
    const headers = FIELDS[status];
    return [
      status,
      {
        description: [...sentences].join(' '),
        ...(headers === undefined ? {} : { headers }),
        content: { 'application/json': { schema: documented(named('Error')) } },
      },
    ];
  });
  return Object.fromEntries(responses);
}
