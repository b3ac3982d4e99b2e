import type { App } from '@rollcall/platform/http/server.ts';

/** `GET /`: where to go, for whoever opens the address without a token. */
export function entryRoute(app: App): void {
  app.get('/', () => ({
    service: 'gateway',
    message: 'Ask for a token at `token`, and call the service of a name at /api/v1/<name>/<path> with it.',
    health: '/api/health',
    token: '/api/v1/auth/token',
    keys: '/.well-known/jwks.json',
    graphql: '/api/graphql',
    graphiql: '/api/graphiql',
    websocket: '/api/ws',
    websocket_description: '/api/ws/asyncapi.json',
    registry: '/api/v1/registry/services',
    documentation: '/api/docs',
    openapi: '/api/openapi.json',
  }));
}
