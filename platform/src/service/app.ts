import type { IncomingMessage } from 'node:http';
import type { RouteOptions } from 'fastify';
import type { Registry } from 'prom-client';
import { Type } from 'typebox';
import { commonRefusals } from '../common-errors.ts';
import type { ErrorKind } from '../errors.ts';
import { addSubgraph, type SubgraphOptions } from '../graphql/subgraph.ts';
import { type ReadCaller, requireCallers } from '../http/callers.ts';
import { codedErrorBody } from '../http/errors.ts';
import { LARGE_BYTES, limitLargeBodies } from '../http/large-bodies.ts';
import { describeApi, type OpenApiOptions } from '../http/open-api.ts';
import type { RequestTracing } from '../http/request-spans.ts';
import { type App, createServer } from '../http/server.ts';
import { answerToServiceError } from '../http/service-errors.ts';
import type { Logger } from '../process/log.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the route refuses beside what every one does, for the OpenAPI document. */
    refuses?: readonly ErrorKind[];
  }
}

/** A group of routes. */
export type Routes = (app: App) => void;

/** What a service offers. */
export interface ServiceApi extends Pick<OpenApiOptions, 'title' | 'description' | 'tags'> {
  /** Where its paths begin; `/api/v1` when absent. */
  readonly base?: '/api/v1' | '/api';
  /** Whether its POST take an Idempotency-Key; they do when absent. */
  readonly areKeyed?: boolean;
  /** Paths are relative to the base; each is in the table of scopes. */
  readonly routes: readonly Routes[];
  /** Pages for people, outside of the base: open to all. */
  readonly pages?: readonly Routes[];
  /** At `/api/graphql`. */
  readonly subgraph?: Pick<SubgraphOptions, 'sdl' | 'resolvers'>;
  /** Largest request body in bytes. */
  readonly bodyLimit: number;
}

export interface ServiceAppOptions extends ServiceApi {
  /** The registered name. */
  readonly service: string;
  readonly version: string;
  readonly log: Logger;
  readonly metrics: Registry;
  readonly readCaller: ReadCaller;
  readonly closingLimitMs: number;
  readonly isStopping: () => boolean;
  readonly tracing: RequestTracing | undefined;
  /** As of {@link createServer}. */
  readonly acceptsUpgrade?: (request: IncomingMessage) => boolean;
}

const Refusal = Type.Object({
  error: Type.Object({
    code: Type.String({ description: 'For programs: the same for a kind of error' }),
    message: Type.String({ description: 'For people: what is wrong, and what to do' }),
    details: Type.Object({}, { additionalProperties: true }),
  }),
});

/** The HTTP application of a service (docs/decisions/0310). It does not listen. */
export async function buildServiceApp(options: ServiceAppOptions): Promise<App> {
  const { service, version, routes, pages = [], subgraph, readCaller, ...server } = options;
  const { base = '/api/v1', areKeyed = true } = options;
  const app = createServer({ ...server, mapError: answerToServiceError, renderError: codedErrorBody });
  const { title, description, tags } = options;
  const entry = {
    service,
    message: `All paths begin with ${base}; \`documentation\` shows them to people, \`openapi\` to programs.`,
    documentation: `${base}/docs`,
    openapi: `${base}/openapi.json`,
    health: `${base}/health`,
    ...(subgraph === undefined ? {} : { graphql: '/api/graphql' }),
  };
  app.get('/', { schema: { hide: true } }, () => entry);
  for (const register of pages) register(app);
  if (options.bodyLimit > LARGE_BYTES) limitLargeBodies(app);
  if (subgraph !== undefined) await addSubgraph(app, { ...subgraph, service, readCaller });
  await app.register(
    async (scope) => {
      const api = scope as App;
      requireCallers(api, service, readCaller);
      await describeApi(api, {
        title,
        version,
        description,
        tags,
        schemas: { Refusal },
        bearer: "A token of the gateway's, which passes on who calls",
        isOpen,
        mayBeOpen: false,
        refusals: (route) => [
          ...commonRefusals({ ...refusingOf(route), isKeyed: areKeyed && route.method === 'POST' }),
          ...refusesOf(route),
        ],
        refusal: { $ref: '#/components/schemas/Refusal' },
      });
      for (const register of routes) register(api);
      api.get('/openapi.json', { schema: { hide: true } }, () => api.swagger());
    },
    { prefix: base },
  );
  return app;
}

function isOpen({ config }: RouteOptions): boolean {
  return config?.operation?.scope === undefined;
}

function refusingOf(route: RouteOptions) {
  return { needsCaller: !isOpen(route), isOfOne: route.url.includes(':') };
}

function refusesOf({ config }: RouteOptions): readonly ErrorKind[] {
  return config?.refuses ?? [];
}
