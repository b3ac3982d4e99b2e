import type { App } from '@rollcall/platform/http/server.ts';
import { RegistryError } from '../domain/errors.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Who calls; undefined where authentication is off. */
    subject: string | undefined;
  }
  interface FastifyContextConfig {
    /** Anyone may call the route, even where authentication is on. */
    anonymous?: boolean;
  }
}

/** @returns the subject of a valid token, or undefined. Throws when that cannot be found out now. */
export type Authenticate = (token: string) => Promise<string | undefined>;

/** The token of an Authorization header, or of the metadata of that name; undefined: there is none. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return /^Bearer +([\w.~+/=-]+)$/i.exec(authorization ?? '')?.[1];
}

/** Requires a bearer token (RFC 6750) on every route of the app that is not marked `anonymous`. */
export function authentication(app: App, authenticate: Authenticate | undefined): void {
  app.decorateRequest('subject', undefined);
  if (authenticate === undefined) return;
  app.addHook('onRequest', async (request) => {
    if (request.routeOptions.config.anonymous === true) return;
    const token = bearerToken(request.headers.authorization);
    const subject = token === undefined ? undefined : await authenticate(token);
    if (subject === undefined) throw new RegistryError('UNAUTHENTICATED');
    request.subject = subject;
  });
}
