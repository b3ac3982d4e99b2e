import type { App } from '@rollcall/platform/http/server.ts';
import { GatewayError } from '../errors.ts';
import type { Authenticator } from '../policy/caller.ts';
import { PATH } from '../websocket/upgrade.ts';
import { requireCaller } from './bearer.ts';

/**
 * `GET /api/ws/asyncapi.json`: what can be said over `/api/ws`, as an AsyncAPI document. A request for `/api/ws` that is no upgrade, or
 * no more one since a proxy, is told so.
 */
export function asyncApiRoute(
  app: App,
  { document, authenticator }: { readonly document: object; readonly authenticator: Authenticator },
): void {
  app.get(`${PATH}/asyncapi.json`, async (request) => {
    await requireCaller(request, authenticator);
    return document;
  });
  app.get(PATH, () => {
    throw new GatewayError('UPGRADE_REQUIRED', { headers: { connection: 'upgrade', upgrade: 'websocket' } });
  });
}
