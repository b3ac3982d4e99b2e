import type { App } from '@rollcall/platform/http/server.ts';
import type { Registry } from 'prom-client';
import { HealthReport } from './health-schema.ts';
import { timestamp } from './schemas.ts';

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
