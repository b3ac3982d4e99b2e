import type { App } from '@rollcall/platform/http/server.ts';
import type { Registry } from 'prom-client';
import { HealthReport } from './health-schema.ts';
import { timestamp } from './schemas.ts';

/** What this replica can say of itself now. */
interface HealthState {
  readonly storeConnected: boolean;
  readonly databaseConnected: boolean;
  readonly cacheSize: number;
  readonly hits: number;
  readonly misses: number;
  /** When the local copy was last in step with the store; undefined before the first time. */
  readonly lastRefreshAt: Date | undefined;
}

export interface HealthRoutesDeps {
  readonly version: string;
  readonly startedAt: Date;
  readonly state: () => HealthState;
  readonly metrics: Registry;
}

/** Contract 1, GET /health, and the process' metrics on the API port. */
export function healthRoutes(app: App, { version, startedAt, state, metrics }: HealthRoutesDeps): void {
  app.get(
    '/health',
    {
      schema: { tags: ['health'], summary: 'Health report', response: { 200: HealthReport, 503: HealthReport } },
      config: { access: 'public' },
    },
    async (_request, reply) => {
      const { storeConnected, databaseConnected, cacheSize, hits, misses, lastRefreshAt } = state();
      const lookUps = hits + misses;
      return reply.status(storeConnected ? 200 : 503).send({
        status: storeConnected ? 'healthy' : 'unhealthy',
        service: 'registry',
        version,
        store: storeConnected ? 'connected' : 'disconnected',
        database: databaseConnected ? 'connected' : 'disconnected',
        cache: {
          size: cacheSize,
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
