import type { App } from '@rollcall/platform/http/server.ts';
import type { Registry } from 'prom-client';
import { Type } from 'typebox';
import { Timestamp, timestamp } from './schemas.ts';

/** Contract 1, "Health report". */
const HealthReport = Type.Object({
  status: Type.Union([Type.Literal('healthy'), Type.Literal('unhealthy')]),
  service: Type.String(),
  version: Type.String(),
  store: Type.Union([Type.Literal('connected'), Type.Literal('disconnected')], { description: 'The Kubernetes API' }),
  database: Type.Union([Type.Literal('connected'), Type.Literal('disconnected')], {
    description: 'PostgreSQL, which holds history and releases; discovery does without it',
  }),
  cache: Type.Object({
    size: Type.Integer({ description: 'Services in memory' }),
    hits: Type.Integer(),
    misses: Type.Integer({ description: 'Lookups that went to the backing store' }),
    hit_ratio: Type.Number({ description: 'hits / (hits + misses); 0 before the first lookup' }),
    last_refresh: Timestamp,
  }),
});

export interface HealthRoutesDeps {
  readonly version: string;
  readonly startedAt: Date;
  /** Whether the Kubernetes API answers. */
  readonly storeConnected: () => boolean;
  /** Whether PostgreSQL does. */
  readonly databaseConnected: () => boolean;
  readonly cache: () => CacheState;
  readonly metrics: Registry;
}

/** The registrations in memory. */
export interface CacheState {
  readonly size: number;
  readonly hits: number;
  readonly misses: number;
  /** When the copy was last in step with the store; undefined before the first time. */
  readonly lastRefreshAt: Date | undefined;
}

/** Contract 1, GET /health, and the process' metrics on the API port. */
export function healthRoutes(app: App, deps: HealthRoutesDeps): void {
  const { version, startedAt, metrics } = deps;
  app.get(
    '/health',
    {
      schema: { tags: ['health'], summary: 'Health report', response: { 200: HealthReport, 503: HealthReport } },
      config: { access: 'public' },
    },
    async (_request, reply) => {
      const { size, hits, misses, lastRefreshAt } = deps.cache();
      const isHealthy = deps.storeConnected();
      const lookUps = hits + misses;
      return reply.status(isHealthy ? 200 : 503).send({
        status: isHealthy ? 'healthy' : 'unhealthy',
        service: 'registry',
        version,
        store: isHealthy ? 'connected' : 'disconnected',
        database: deps.databaseConnected() ? 'connected' : 'disconnected',
        cache: {
          size,
          hits,
          misses,
          hit_ratio: lookUps === 0 ? 0 : hits / lookUps,
          last_refresh: timestamp(lastRefreshAt ?? startedAt),
        },
      });
    },
  );
  app.get('/metrics', { schema: { hide: true }, config: { access: 'public' } }, async (_request, reply) =>
    reply.type(metrics.contentType).send(await metrics.metrics()),
  );
}
