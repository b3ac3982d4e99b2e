import type { Clock } from '@rollcall/platform/clock.ts';
import type { App } from '@rollcall/platform/http/server.ts';

export interface HealthDeps {
  readonly version: string;
  readonly clock: Clock;
  /** Undefined when the gateway can serve, else what it lacks. */
  readonly fault: () => string | undefined;
}

/**
 * `GET /api/health` (contract 3): `uptime` in whole seconds. What is no fault of this replica's
 * does not make it unhealthy.
 */
export function healthRoute(app: App, { version, clock, fault }: HealthDeps): void {
  const startedAtMs = clock.monotonicMs();
  app.get('/api/health', (_request, reply) => {
    const uptime = Math.floor((clock.monotonicMs() - startedAtMs) / 1000);
    const lacking = fault();
    const status = lacking === undefined ? 'healthy' : 'unhealthy';
    return reply.status(lacking === undefined ? 200 : 503).send({ status, version, uptime });
  });
}
