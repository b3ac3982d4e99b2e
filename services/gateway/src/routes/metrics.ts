import type { App } from '@rollcall/platform/http/server.ts';
import type { Registry } from 'prom-client';
import { GatewayError } from '../errors.ts';
import type { Authenticator } from '../policy/caller.ts';
import { requireCaller } from './bearer.ts';

/** The scope that reads metrics by the public port; Prometheus reads them at the admin port, without a token. */
const SCOPE = 'metrics:read';

/** `GET /api/metrics` (contract 3), in the text format of Prometheus. */
export function metricsRoute(
  app: App,
  { metrics, authenticator }: { readonly metrics: Registry; readonly authenticator: Authenticator },
): void {
  app.get('/api/metrics', async (request, reply) => {
    const { scopes } = await requireCaller(request, authenticator);
    if (!scopes.has(SCOPE) && !scopes.has('*')) {
      throw new GatewayError('INSUFFICIENT_SCOPE', { details: { missing: [SCOPE] } });
    }
    return reply.type(metrics.contentType).send(await metrics.metrics());
  });
}
