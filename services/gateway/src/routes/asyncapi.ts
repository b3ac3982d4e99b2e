import type { App } from '@rollcall/platform/http/server.ts';
import type { Authenticator } from '../policy/caller.ts';
import { requireCaller } from './bearer.ts';

/** `GET /api/ws/asyncapi.json`: what can be said over `/api/ws`, as an AsyncAPI document. */
export function asyncApiRoute(
  app: App,
  { document, authenticator }: { readonly document: object; readonly authenticator: Authenticator },
): void {
  app.get('/api/ws/asyncapi.json', async (request) => {
    await requireCaller(request, authenticator);
    return document;
  });
}
