import type { App } from '@rollcall/platform/http/server.ts';
import type { AdmissionDeps } from '../admission/admission.ts';
import { admitRequest } from '../admission/admit-request.ts';
import { PATH } from '../doors/websocket/upgrade.ts';
import { GatewayError } from '../errors.ts';

/**
 * `GET /api/ws/asyncapi.json`: what can be said over `/api/ws`, as an AsyncAPI document. A request
 * for `/api/ws` that is no upgrade, or no more one since a proxy, is answered so.
 */
export function asyncApiRoute(
  app: App,
  { document, admission }: { readonly document: object; readonly admission: AdmissionDeps },
): void {
  app.get(`${PATH}/asyncapi.json`, async (request, reply) => {
    await admitRequest(admission, { request, reply }, []);
    return document;
  });
  app.get(PATH, () => {
    throw new GatewayError('UPGRADE_REQUIRED', { headers: { connection: 'upgrade', upgrade: 'websocket' } });
  });
}
