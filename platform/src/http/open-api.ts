import swagger from '@fastify/swagger';
import type { FastifySchema, RouteOptions } from 'fastify';
import type { ErrorKind } from '../errors.ts';
import { documentationPage } from './documentation-page.ts';
import { completed, Member } from './documented.ts';
import { serverErrors } from './errors.ts';
import type { App } from './server.ts';

export interface OpenApiOptions {
  readonly title: string;
  readonly version: string;
  readonly description: string;
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  /** What the document names, and refers to. */
  readonly schemas: Readonly<Record<string, object>>;
  /** What a bearer token of callers is, for people. */
  readonly bearer: string;
  /** Whether a route is open to all. */
  readonly isOpen: (route: RouteOptions) => boolean;
  /** Whether the others may be open, too, as an installation has it. */
  readonly mayBeOpen: boolean;
  /** What a route refuses or cannot do, beside what every server does. */
  readonly refusals: (route: RouteOptions) => readonly ErrorKind[];
  /** Schema of the body of every refusal. */
  readonly refusal: object;
}

/** From any place at which the document is read: `/api/v1/openapi.json` here, below another prefix behind the gateway. */
const BESIDE_DOCUMENT = [{ url: '.' }];
/** The page reads it at `docs/json`. */
const ABOVE_PAGE = [{ url: '..' }];

/**
 * OpenAPI 3.1 from the route schemas, and a page that shows it at `docs`. Registered before the
 * routes, so that it sees them.
 */
export async function describeApi(app: App, options: OpenApiOptions): Promise<void> {
  const { title, version, description, tags, schemas, bearer } = options;
  const { prefix } = app;
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title, version, description },
      components: {
        schemas: { Member, ...schemas },
        securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: bearer } },
      },
      tags: [...tags],
    },
    transform: ({ schema, url, route }) => ({
      schema: describedSchema(schema, route, options),
      url: url.slice(prefix.length),
    }),
    transformObject: (document) => ({
      ...completed('openapiObject' in document ? document.openapiObject : document.swaggerObject),
      servers: BESIDE_DOCUMENT,
    }),
  });
  await documentationPage(app, '/docs', {
    transformSpecification: (document) => ({ ...document, servers: ABOVE_PAGE }),
  });
}

/** The schema of a route with all that it may answer, and whether it asks who calls. */
function describedSchema(schema: FastifySchema, route: RouteOptions, options: OpenApiOptions): FastifySchema {
  if (schema.hide === true) return schema;
  const { isOpen, mayBeOpen, refusals, refusal } = options;
  const { response } = schema;
  const security = [...(mayBeOpen ? [{}] : []), { bearer: [] }];
  return {
    ...schema,
    ...(isOpen(route) ? {} : { security }),
    response: {
      ...(typeof response === 'object' ? response : {}),
      ...refusalResponses([...serverRefusals(route.method !== 'GET'), ...refusals(route)], refusal),
    },
  };
}

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

function refusalResponses(refusals: readonly ErrorKind[], schema: object): Record<string, object> {
  const byStatus = Map.groupBy(refusals, ({ status }) => status);
  const responses = [...byStatus].map(([status, each]) => {
    const sentences = new Set(each.map(sentenceOf));
    const headers = FIELDS[status];
    return [
      status,
      {
        description: [...sentences].join(' '),
        ...(headers === undefined ? {} : { headers }),
        content: { 'application/json': { schema } },
      },
    ];
  });
  return Object.fromEntries(responses);
}

function sentenceOf({ error, message }: ErrorKind): string {
  return error === undefined ? `${message}.` : `${error}: ${message}.`;
}
