import compress from '@fastify/compress';
import type { RequestTracing } from '@rollcall/platform/http/request-spans.ts';
import { type App, createServer } from '@rollcall/platform/http/server.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import type { Registry } from 'prom-client';
import { type Authentication, requireCredentials } from '../http/authentication.ts';
import { documentation, openApiRoute } from '../http/documentation.ts';
import { mapError } from '../http/errors.ts';
import { refuseMisspeltMembers } from '../http/misspelt-members.ts';

const BODY_LIMIT_BYTES = 256 * 1024;
/** `GET /`: where to go. */
const ENTRY = {
  service: 'registry',
  message: 'All paths begin with /api/v1; `documentation` shows them to people, `openapi` to programs.',
  documentation: '/api/v1/docs',
  openapi: '/api/v1/openapi.json',
  health: '/api/v1/health',
  services: '/api/v1/services',
};

/** A group of routes; paths are relative to `/api/v1`. */
export type Routes = (app: App) => void;

export interface AppDeps {
  readonly log: Logger;
  readonly metrics: Registry;
  /** Of the registry, for the OpenAPI document. */
  readonly version: string;
  /** Undefined: no authentication, as the contract has it. */
  readonly authentication: Authentication | undefined;
  readonly routes: readonly Routes[];
  /** How long callers may read their answers once the app closes. */
  readonly closingLimitMs: number;
  /** Whether the process is about to end, so that answers close their connections. */
  readonly isStopping: () => boolean;
  /** Undefined: requests are not traced. */
  readonly tracing?: RequestTracing | undefined;
}

/** The registry's HTTP application. It does not listen. */
export async function buildApp(deps: AppDeps): Promise<App> {
  const { log, metrics, version, authentication, routes, closingLimitMs, isStopping, tracing } = deps;
  const app = createServer({
    log,
    metrics,
    bodyLimit: BODY_LIMIT_BYTES,
    mapError,
    closingLimitMs,
    isStopping,
    tracing,
  });
  app.get('/', { schema: { hide: true } }, () => ENTRY);
  await app.register(
    async (scope) => {
      const api = scope as App;
      await documentation(api, version);
      // Whole lists are large. Other answers say so themselves.
      await api.register(compress, { global: false, encodings: ['br', 'gzip'] });
      requireCredentials(api, authentication);
      refuseMisspeltMembers(api);
      for (const register of routes) register(api);
      openApiRoute(api);
    },
    { prefix: '/api/v1' },
  );
  return app;
}
