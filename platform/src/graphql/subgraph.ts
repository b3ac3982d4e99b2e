import type { IncomingHttpHeaders } from 'node:http';
import { buildFederationSchema } from '@mercuriusjs/federation';
import type { FastifyRequest } from 'fastify';
import { type GraphQLSchema, isObjectType, parse } from 'graphql/index.js';
import { mercurius } from 'mercurius';
import { Type } from 'typebox';
import { type ReadCaller, requireScope } from '../http/callers.ts';
import type { Identity } from '../http/identity.ts';
import { graphqlOperation } from '../http/scopes.ts';
import type { App } from '../http/server.ts';
import { type FormattedError, formatError } from './errors.ts';
import { EXPANSION_LIMITS, limitsRule } from './limits.ts';

/** Where every subgraph of Rollcall is (contract 2). */
const PATH = '/api/graphql';
/** Queries of people and of query plans are far smaller. */
const MOST_TOKENS = 2000;
const LONGEST_QUERY = 15_000;
const LIMITS = { depth: 20, aliases: 50, rootFields: 30, directives: 50, ...EXPANSION_LIMITS };
const RESPONSE_TYPE = 'application/graphql-response+json';

/** What resolvers know of a request. */
export interface SubgraphContext {
  /** Undefined only for fields that need no scope. */
  readonly caller: Identity | undefined;
  readonly headers: IncomingHttpHeaders;
}

/** Of one field; or, as `__resolveReference`, of an entity that another subgraph refers to. */
type Resolver = (source: never, args: never, context: SubgraphContext) => unknown;

/** By type and field. */
export type Resolvers = Readonly<Record<string, Readonly<Record<string, Resolver>>>>;

export interface SubgraphOptions {
  /** The registered name of the service. */
  readonly service: string;
  /** With `extend schema @link(…)` of Federation 2. `_service { sdl }` answers with it as it is. */
  readonly sdl: string;
  /** Of every field of Query and Mutation, at least. */
  readonly resolvers: Resolvers;
  readonly readCaller: ReadCaller;
  /** Largest request body in bytes; that of the server when absent. */
  readonly bodyLimit?: number;
}

const GraphqlRequest = Type.Object({
  query: Type.String({ minLength: 1, maxLength: LONGEST_QUERY }),
  variables: Type.Optional(Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()])),
  operationName: Type.Optional(Type.Union([Type.String(), Type.Null()])),
});

/**
 * Serves a subgraph of Federation 2 at `/api/graphql`, by POST. Each field of a root type, and each
 * entity with `__resolveReference`, needs the scope that the table has for it. Its SDL and
 * introspection are for all.
 *
 * What the request itself lacks is answered as over REST; what is wrong in a document or a field is
 * among `errors`, with the code and details of REST in `extensions`.
 *
 * @throws Error for a field of a root type that has no resolver, or that the table of scopes lacks.
 */
export async function addSubgraph(app: App, options: SubgraphOptions): Promise<void> {
  const { service, sdl, resolvers, readCaller, bodyLimit } = options;
  const schema = buildFederationSchema(sdl);
  requireResolvers(schema, resolvers);
  await app.register(mercurius, {
    schema,
    resolvers: withScopes(service, resolvers),
    routes: false,
    // Parsed documents are many times larger than their text, and callers choose how many there are.
    cache: false,
    validationRules: [limitsRule(LIMITS)],
    errorFormatter: ({ data, errors }) => ({ statusCode: 200, response: { data: data ?? null, errors } }),
  });
  const route = { schema: { hide: true, body: GraphqlRequest }, ...(bodyLimit === undefined ? {} : { bodyLimit }) };
  app.post(PATH, route, async (request, reply) => {
    const caller = await readCaller(request);
    const { status, body } = await execute(request, { caller, headers: request.headers });
    const isAsked = request.headers.accept?.includes(RESPONSE_TYPE) === true;
    return reply
      .status(status)
      .type(isAsked ? RESPONSE_TYPE : 'application/json')
      .send(body);
  });

  async function execute({ body, log, id }: GraphqlCall, context: SubgraphContext): Promise<GraphqlResponse> {
    const { query, variables, operationName } = body;
    const format = (error: unknown): FormattedError =>
      formatError(error, (err) => log.error({ err, reqId: id }, 'a resolver failed'));
    try {
      // Mercurius would take a document as JSON where this fails, and its limit of tokens be got around.
      parse(query, { maxTokens: MOST_TOKENS });
      const { data, errors } = await app.graphql(query, { ...context }, variables ?? {}, operationName ?? undefined);
      return { status: 200, body: errors === undefined ? { data } : { data, errors: errors.map(format) } };
    } catch (error) {
      return { status: 400, body: { errors: errorsIn(error).map(format) } };
    }
  }
}

type GraphqlCall = Pick<FastifyRequest, 'log' | 'id'> & {
  readonly body: {
    readonly query: string;
    readonly variables?: Record<string, unknown> | null;
    readonly operationName?: string | null;
  };
};

interface GraphqlResponse {
  readonly status: number;
  readonly body: { readonly data?: unknown; readonly errors?: readonly FormattedError[] };
}

/** Mercurius throws what is wrong with a document, or with its variables, as one error. */
function errorsIn(error: unknown): readonly unknown[] {
  const errors: unknown = error instanceof Error && 'errors' in error ? error.errors : undefined;
  return Array.isArray(errors) ? errors : [error];
}

const ROOT_TYPES = ['Query', 'Mutation'];
/** What federation adds. */
const OWN_FIELDS = new Set(['_service', '_entities']);

function requireResolvers(schema: GraphQLSchema, resolvers: Resolvers): void {
  for (const name of ROOT_TYPES) {
    const type = schema.getType(name);
    if (!isObjectType(type)) continue;
    const lacking = Object.keys(type.getFields()).find(
      (field) => !OWN_FIELDS.has(field) && resolvers[name]?.[field] === undefined,
    );
    if (lacking !== undefined) throw new Error(`The subgraph has no resolver for ${name}.${lacking}`);
  }
}

const REFERENCE = '__resolveReference';

function withScopes(service: string, resolvers: Resolvers): Resolvers {
  const types = Object.entries(resolvers).map(([type, fields]) => {
    const isRoot = ROOT_TYPES.includes(type);
    const guarded = Object.entries(fields).map(([field, resolver]) => {
      if (field === REFERENCE) return [field, withScope(service, type, resolver)];
      return [field, isRoot ? withScope(service, `${type}.${field}`, resolver) : resolver];
    });
    return [type, Object.fromEntries(guarded)];
  });
  return Object.fromEntries(types);
}

/** @throws Error for what the table of scopes lacks. */
function withScope(service: string, name: string, resolver: Resolver): Resolver {
  const operation = graphqlOperation(service, name);
  if (operation === undefined) throw new Error(`The table of scopes lacks ${name} of ${service}`);
  const { scope } = operation;
  return async (source, args, context) => {
    if (scope !== undefined) requireScope(context.caller, scope);
    return resolver(source, args, context);
  };
}
