import { jsonParser } from './body-text.ts';
import type { App } from './server.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** The bytes of a JSON body, on routes that check signatures; empty where there was none. */
    rawBody: Buffer;
  }
}

const NOTHING = Buffer.alloc(0);

/**
 * Adds routes whose JSON bodies are also kept as the bytes that came, which is what a signature
 * covers.
 */
export function withRawBody(app: App, routes: (app: App) => void): void {
  void app.register((scope, _options, done) => {
    const parse = jsonParser(scope);
    scope.decorateRequest('rawBody');
    scope.addHook('onRequest', async (request) => {
      request.rawBody = NOTHING;
    });
    scope.removeContentTypeParser('application/json');
    scope.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body: Buffer, parsed) => {
      request.rawBody = body;
      parse(request, body, parsed);
    });
    routes(scope);
    done();
  });
}

/**
 * Adds routes whose bodies are the bytes that came, of whatever type: providers sign what they post,
 * and each posts in a form of its own. An empty body is undefined.
 */
export function withBytes(app: App, routes: (app: App) => void): void {
  void app.register((scope, _options, done) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body: Buffer, parsed) => parsed(null, body));
    routes(scope);
    done();
  });
}
