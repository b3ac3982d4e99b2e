import type { IncomingHttpHeaders } from 'node:http';
import { identityHeaders, isIdentityFor } from '@rollcall/platform/http/identity.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import { RegistryError } from '../common/errors.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Who calls; undefined where authentication is off. */
    subject: string | undefined;
  }
  interface FastifyContextConfig {
    /**
     * Who may call the route where authentication is on: anybody (`public`), or anybody unless
     * reads need credentials, too (`read`). By default only who shows credentials.
     */
    access?: 'public' | 'read';
  }
}

/** What a call shows of who makes it. */
export interface Credentials {
  /** The bearer token. */
  readonly token: string | undefined;
  /** Of a client of the gateway's, as the gateway has signed it. */
  readonly identity: string | undefined;
}

/**
 * @returns the subject of valid credentials, or undefined. Throws when that cannot be found out
 * now.
 */
export type Authenticate = (shown: Credentials) => Promise<string | undefined>;

/** How callers are known. */
export interface Authentication {
  readonly authenticate: Authenticate;
  /** Whether reads need credentials, too. */
  readonly reads: 'open' | 'authenticated';
}

/**
 * Who calls. Credentials that are shown have to be good, also where none are needed: nobody is
 * counted as another. A reader who needs none is served while they cannot be checked.
 *
 * @param authentication undefined: nobody has to say who they are.
 * @param isRead whether the call changes nothing.
 * @throws RegistryError UNAUTHENTICATED; the errors of {@link Authenticate}.
 */
export async function subjectOf(
  authentication: Authentication | undefined,
  shown: Credentials,
  isRead: boolean,
): Promise<string | undefined> {
  if (authentication === undefined) return undefined;
  const isOpen = isRead && authentication.reads === 'open';
  if (isOpen && shown.token === undefined && shown.identity === undefined) return undefined;
  let subject: string | undefined;
  try {
    subject = await authentication.authenticate(shown);
  } catch (error) {
    if (isOpen) return undefined;
    throw error;
  }
  if (subject === undefined) throw new RegistryError('UNAUTHENTICATED');
  return subject;
}

/** By which the gateway knows the registry, and its rules. */
export const OWN_NAME = 'registry';

/** By which name the gateway let a call in; both undefined: it did not come by the gateway. */
export interface LetInBy {
  /** Over REST, and there on every request. */
  readonly service?: string | undefined;
  /** Of who had to say who it is, which is everybody over gRPC. */
  readonly identity: string | undefined;
}

/**
 * Who registers the registry's URL under another name gets around the scopes that the gateway asks
 * for at the registry's own, or around tokens altogether where a route to that name is open to all.
 * So a request that came by another name is refused, whether credentials are asked for or not.
 *
 * @throws RegistryError LET_IN_FOR_ANOTHER.
 */
export function refuseOtherNames({ service, identity }: LetInBy): void {
  const isOwn = service === undefined || service === OWN_NAME;
  if (isOwn && (identity === undefined || isIdentityFor(OWN_NAME, identity))) return;
  throw new RegistryError('LET_IN_FOR_ANOTHER');
}

/** @param find reads a header, or metadata, by its name. */
export function credentialsOf(find: (name: string) => string | undefined): Credentials {
  return { token: bearerToken(find('authorization')), identity: find(identityHeaders.token) };
}

/** What a request of HTTP shows. */
export function headerCredentials(headers: IncomingHttpHeaders): Credentials {
  return credentialsOf((name) => {
    const value = headers[name];
    return typeof value === 'string' ? value : undefined;
  });
}

/**
 * The token of an Authorization header, or of the metadata of that name; undefined: there is none.
 */
function bearerToken(authorization: string | undefined): string | undefined {
  return /^Bearer +([\w.~+/=-]+)$/i.exec(authorization ?? '')?.[1];
}

/**
 * Requires credentials, such as a bearer token (RFC 6750), on every route of the app but those
 * whose `access` says otherwise; and of who comes by the gateway on all of them, that it came for
 * the registry.
 */
export function requireCredentials(app: App, authentication: Authentication | undefined): void {
  app.decorateRequest('subject', undefined);
  app.addHook('onRequest', ({ headers }, _reply, done) => {
    refuseOtherNames({
      service: headers[identityHeaders.service]?.toString(),
      identity: headers[identityHeaders.token]?.toString(),
    });
    done();
  });
  if (authentication === undefined) return;
  app.addHook('onRequest', async (request) => {
    const { access } = request.routeOptions.config;
    if (access === 'public') return;
    request.subject = await subjectOf(authentication, headerCredentials(request.headers), access === 'read');
  });
}
