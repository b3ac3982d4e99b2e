import swaggerUi, { type FastifySwaggerUiOptions } from '@fastify/swagger-ui';
import type { App } from './server.ts';

const STATIC_INDEX = '/static/index.html';

/**
 * A page of Swagger UI, with relative links: proxies have the page below other prefixes. Unless the
 * options say otherwise it shows the application's own OpenAPI document.
 *
 * @param prefix below that of the application.
 * @throws where the application has no document.
 */
export async function documentationPage(app: App, prefix: string, options: FastifySwaggerUiOptions): Promise<void> {
  await app.register(swaggerUi, {
    ...options,
    routePrefix: prefix,
    indexPrefix: '.',
    transformSpecificationClone: false,
    uiHooks: {
      onRequest: (request, reply, done) => {
        if (request.routeOptions.url?.endsWith(STATIC_INDEX) === true) void reply.redirect('../');
        else done();
      },
    },
  });
}
