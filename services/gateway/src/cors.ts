import type { App } from '@rollcall/platform/http/server.ts';

/** Of an answer, what a page may read besides its body. */
const EXPOSED = [
  'retry-after',
  'x-request-id',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
  'ratelimit',
  'ratelimit-policy',
].join(', ');
/** How long a browser need not ask again, in seconds: Chromium accepts no more. */
const MAX_AGE = '7200';
const FIELD_NAMES = /^[\w!#$%&'*+.^`|~, -]{1,4096}$/;

/**
 * Lets pages of other origins call and read the answers (Fetch, section 3.3). Their browser asks
 * first, without a token, and is answered here; who calls shows a token, no cookie, so that no page
 * can act in the name of its reader.
 *
 * @fastify/cors answers all OPTIONS requests, also those for a service.
 *
 * @param origins as browsers send them, `https://app.example.com`; `*`: all.
 */
export function allowOrigins(app: App, origins: ReadonlySet<string>): void {
  app.addHook('onRequest', ({ method, headers }, reply, done) => {
    reply.header('vary', 'origin');
    const { origin } = headers;
    if (origin === undefined || !(origins.has('*') || origins.has(origin))) return done();
    reply.header('access-control-allow-origin', origin);
    const asked = headers['access-control-request-method'];
    if (method !== 'OPTIONS' || asked === undefined) {
      reply.header('access-control-expose-headers', EXPOSED);
      return done();
    }
    const fields = headers['access-control-request-headers'] ?? '';
    if (FIELD_NAMES.test(fields)) reply.header('access-control-allow-headers', fields);
    if (FIELD_NAMES.test(asked)) reply.header('access-control-allow-methods', asked);
    reply.header('access-control-max-age', MAX_AGE).status(204).send();
  });
}
