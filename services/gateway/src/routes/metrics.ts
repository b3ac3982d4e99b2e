import type { Scope } from '@rollcall/platform/http/operations/operation.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import type { Registry } from 'prom-client';
import type { AdmissionDeps } from '../admission/admission.ts';
import { admitRequest } from '../admission/admit-request.ts';

/**
 * The scope that reads metrics by the public port; Prometheus reads them at the admin port, without
 * a token.
 */
const SCOPE: Scope = 'metrics:read';

/** `GET /api/metrics` (contract 3), in the text format of Prometheus. */
export function metricsRoute(
  app: App,
  { metrics, admission }: { readonly metrics: Registry; readonly admission: AdmissionDeps },
): void {
  app.get('/api/metrics', async (request, reply) => {
    await admitRequest(admission, { request, reply }, [SCOPE]);
    return reply.type(metrics.contentType).send(await metrics.metrics());
  });
}
