import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { App } from '@rollcall/platform/http/server.ts';

/**
 * OpenAPI 3.1 from the route schemas, and a page that shows it. Registered before the routes, so
 * that it sees them.
 */
export async function documentation(app: App, version: string): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Rollcall registry',
        version,
        description: 'Service registration, discovery, update history and delivery webhooks.',
      },
      tags: [
        { name: 'services', description: 'Registration, discovery, heartbeats' },
        { name: 'updates', description: 'Update history, statistics and export' },
        { name: 'webhooks', description: 'Calls from pipelines and services' },
        { name: 'jobs', description: 'Delivery jobs' },
        { name: 'health', description: 'The registry itself' },
      ],
    },
  });
  // The page names its assets by absolute paths and does not know the prefix that it is registered
  // under.
  await app.register(swaggerUi, { routePrefix: '/docs', indexPrefix: app.prefix });
}

/** `/api/v1/openapi.json`. */
export function openApiRoute(app: App): void {
  app.get('/openapi.json', { schema: { hide: true }, config: { access: 'public' } }, () => app.swagger());
}
