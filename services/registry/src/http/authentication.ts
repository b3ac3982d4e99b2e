import type { IncomingHttpHeaders } from 'node:http';
import { bearerToken } from '@rollcall/platform/http/bearer.ts';
import { nameOperations } from '@rollcall/platform/http/callers.ts';
import { identityHeaders, isIdentityFor, unverifiedScopes } from '@rollcall/platform/http/identity.ts';
import type { Operation } from '@rollcall/platform/http/operations/operation.ts';
import { hasScope } from '@rollcall/platform/http/scopes.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import type { FastifyRequest } from 'fastify';
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
    access?: Access;
  }
}

type Access = 'public' | 'read';

/** What a call shows of who makes it. */
export interface Credentials {
  /** The bearer token. */
  readonly token: string | undefined;
  /**
   * Of a client of the gateway's, as the gateway has signed it. Over gRPC everybody that comes by
   * the gateway has one.
   */
  readonly identity: string | undefined;
  /** By which name the gateway let a request of REST in. */
  readonly service: string | undefined;
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
 * @returns at once where nothing has to be checked.
 * @throws RegistryError UNAUTHENTICATED; the errors of {@link Authenticate}.
 */
function subjectOf(
  authentication: Authentication | undefined,
  shown: Credentials,
  isRead: boolean,
): Promise<string | undefined> | undefined {
  if (authentication === undefined) return undefined;
  const isOpen = isRead && authentication.reads === 'open';
  if (isOpen && shown.token === undefined && shown.identity === undefined) return undefined;
  return checkedSubject(authentication, shown, isOpen);
}

const TOKEN_REFUSED =
  'The bearer token was refused: it has ended, or is meant for another audience than the registry (docs/services.md)';

async function checkedSubject(
  { authenticate }: Authentication,
  shown: Credentials,
  isOpen: boolean,
): Promise<string | undefined> {
  let subject: string | undefined;
  try {
    subject = await authenticate(shown);
  } catch (error) {
    if (isOpen) return undefined;
    throw error;
  }
  if (subject === undefined) throw new RegistryError('UNAUTHENTICATED', shown.token && TOKEN_REFUSED);
  return subject;
}

/** By which the gateway knows the registry, and its rules. */
export const OWN_NAME = 'registry';

/**
 * Who registers the registry's URL under another name gets around the scopes that the gateway asks
 * for at the registry's own, or around tokens altogether where a route to that name is open to all.
 * So a request that came by another name is refused, whether credentials are asked for or not.
 *
 * @throws RegistryError ADMITTED_FOR_ANOTHER.
 */
function refuseOtherNames({ service, identity }: Credentials): void {
  const isOwn = service === undefined || service === OWN_NAME;
  if (isOwn && (identity === undefined || isIdentityFor(OWN_NAME, identity))) return;
  throw new RegistryError('ADMITTED_FOR_ANOTHER');
}

/**
 * Refuses a client of the gateway whose token lacks the scope of an operation. Who calls directly
 * has no scopes: names belong to their subjects, and webhooks are signed.
 *
 * The scopes are read without verifying the identity. Whoever comes by the gateway can neither
 * change nor leave out its own, and a made up one opens nothing that a call without any does not.
 *
 * @throws RegistryError INSUFFICIENT_SCOPE; UNAUTHENTICATED where the gateway let somebody in that
 * showed no token.
 */
function requireScope({ scope }: Operation, { service, identity }: Credentials): void {
  if (scope === undefined || (service === undefined && identity === undefined)) return;
  if (identity === undefined) throw new RegistryError('UNAUTHENTICATED');
  if (hasScope({ scopes: unverifiedScopes(identity) }, scope)) return;
  throw new RegistryError('INSUFFICIENT_SCOPE', `The token lacks the scope ${scope}`);
}

/** What is called, and by whom. */
export interface AskedFor {
  /** Undefined: nothing that there is. */
  readonly operation: Operation | undefined;
  /** See {@link FastifyContextConfig}. */
  readonly access: Access | undefined;
  readonly shown: Credentials;
}

/**
 * Lets a call in, by whichever door.
 *
 * @returns who calls; undefined where nobody has to say. At once where nothing has to be checked:
 * most lookups need no credentials.
 * @throws RegistryError ADMITTED_FOR_ANOTHER, UNAUTHENTICATED, INSUFFICIENT_SCOPE; the errors of
 * {@link Authenticate}.
 */
export function admit(
  authentication: Authentication | undefined,
  { operation, access, shown }: AskedFor,
): Promise<string | undefined> | undefined {
  refuseOtherNames(shown);
  const checked = access === 'public' ? undefined : subjectOf(authentication, shown, access === 'read');
  if (operation === undefined) return checked;
  if (checked === undefined) {
    requireScope(operation, shown);
    return undefined;
  }
  return checked.then((subject) => {
    requireScope(operation, shown);
    return subject;
  });
}

/** @param find reads a header, or metadata, by its name. */
export function credentialsOf(find: (name: string) => string | undefined): Credentials {
  return {
    token: bearerToken(find('authorization')),
    identity: find(identityHeaders.token),
    service: find(identityHeaders.service),
  };
}

/** What a request of HTTP shows. */
export function headerCredentials(headers: IncomingHttpHeaders): Credentials {
  return credentialsOf((name) => headers[name]?.toString());
}

/**
 * Requires credentials, such as a bearer token (RFC 6750), on every route that is added from now on
 * but those whose `access` says otherwise; and of who comes by the gateway the scope of the route,
 * and that it came for the registry.
 *
 * @throws Error for a route that the table of scopes lacks.
 */
export function requireCredentials(app: App, authentication: Authentication | undefined): void {
  app.decorateRequest('subject', undefined);
  nameOperations(app, OWN_NAME);
  app.addHook('onRequest', (request, _reply, done) => {
    const { access, operation } = request.routeOptions.config;
    const checked = admit(authentication, { operation, access, shown: headerCredentials(request.headers) });
    if (checked !== undefined) return keepSubject(request, checked);
    done();
    return undefined;
  });
}

async function keepSubject(request: FastifyRequest, checked: Promise<string | undefined>): Promise<void> {
  request.subject = await checked;
}
