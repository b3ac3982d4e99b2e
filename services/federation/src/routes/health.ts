import type { Routes } from '@rollcall/platform/service/app.ts';
import { Type } from 'typebox';
import type { SubgraphStatus } from '../domain/subgraphs.ts';

export interface HealthDeps {
  readonly version: string;
  readonly isConnected: () => boolean;
  /** Whether queries can be answered, or could be if there were a graph. */
  readonly isServing: () => boolean;
  readonly statuses: () => ReadonlyMap<string, SubgraphStatus>;
}

/** As the report has it: `invalid` are those that do not compose. */
const WORDS = { composed: 'healthy', held: 'invalid', unreachable: 'unreachable', stale: 'stale' } as const;

const HealthReport = Type.Object({
  status: Type.Enum(['healthy', 'unhealthy']),
  service: Type.Literal('federation'),
  version: Type.String(),
  database: Type.Enum(['connected', 'disconnected']),
  services: Type.Record(Type.String(), Type.Enum(['healthy', 'unreachable', 'stale', 'invalid'])),
});

/** `GET /health` of contract 3. A replica that has a graph serves without the database. */
export function healthRoute({ version, isConnected, isServing, statuses }: HealthDeps): Routes {
  const schema = { tags: ['health'], summary: 'Health report', response: { 200: HealthReport, 503: HealthReport } };
  return (app) => {
    app.get('/health', { schema }, async (_request, reply) => {
      const isHealthy = isServing();
      return reply.status(isHealthy ? 200 : 503).send({
        status: isHealthy ? 'healthy' : 'unhealthy',
        service: 'federation',
        version,
        database: isConnected() ? 'connected' : 'disconnected',
        services: Object.fromEntries([...statuses()].map(([service, status]) => [service, WORDS[status]])),
      });
    });
  };
}
