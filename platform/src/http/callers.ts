import type { FastifyRequest } from 'fastify';
import { commonError } from '../common-errors.ts';
import { bearerToken } from './bearer.ts';
import {
  createAccessTokenReader,
  createIdentityReader,
  type GatewayKeysOptions,
  type Identity,
  identityHeaders,
} from './identity.ts';
import type { Operation, Scope } from './operations/operation.ts';
import { hasScope, restOperation } from './scopes.ts';
import type { App } from './server.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Who calls; undefined on routes that need no scope. See {@link callerOf}. */
    caller: Identity | undefined;
  }
  interface FastifyContextConfig {
    /** What the route is in the table of scopes. */
    operation?: Operation;
  }
}

/** Longer than a fetch of the keys that failed keeps the next one waiting (key-sets.ts). */
const RETRY_AFTER_SECONDS = 6;

/**
 * Who calls, by what a request shows. All that is shown has to hold: nobody is taken for another.
 *
 * @returns undefined where it shows nothing.
 * @throws ServiceError UNAUTHENTICATED, and UNAVAILABLE where the gateway's keys cannot be had.
 */
export type ReadCaller = (request: Pick<FastifyRequest, 'headers'>) => Promise<Identity | undefined>;

export interface CallerReaderOptions extends GatewayKeysOptions {
  /** The registered name of this service. */
  readonly service: string;
  /** `aud` of the gateway's access tokens; undefined: they are no credentials here. */
  readonly accessTokenAudience: string | undefined;
}

/** Reads the identity that the gateway signs and, where they count, its access tokens. */
export function createCallerReader(options: CallerReaderOptions): ReadCaller {
  const { accessTokenAudience: audience } = options;
  const identities = createIdentityReader(options);
  const readToken = audience === undefined ? undefined : createAccessTokenReader(options, audience);
  return async (request) => {
    const { authorization, [identityHeaders.token]: identity } = request.headers;
    const shown: Promise<Identity | undefined>[] = [];
    if (identity !== undefined) shown.push(identities.read(request));
    if (readToken !== undefined && authorization !== undefined) {
      const token = bearerToken(authorization);
      shown.push(token === undefined ? Promise.resolve(undefined) : readToken(token));
    }
    const callers = await known(Promise.all(shown));
    if (callers.length === 0) return undefined;
    const [caller] = callers;
    if (caller === undefined || callers.some((each) => each?.subject !== caller.subject))
      throw commonError('UNAUTHENTICATED');
    return caller;
  };
}

async function known<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (cause) {
    throw commonError('UNAVAILABLE', {
      message: "The keys of the gateway cannot be had, so that nobody's credentials can be checked",
      headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
      cause,
    });
  }
}

/**
 * Gives every route that is added from now on its row of the table of scopes.
 *
 * @param service its registered name.
 * @throws Error, as the route is added, for one that the table lacks.
 */
export function nameOperations(app: App, service: string): void {
  app.addHook('onRoute', (route) => {
    const path = route.url.slice(app.prefix.length);
    const [operation] = [route.method].flat().map((method) => restOperation(service, method, path));
    if (operation === undefined) throw new Error(`The table of scopes lacks ${route.method.toString()} ${path}`);
    route.config = { ...route.config, operation };
  });
}

/**
 * Lets requests to the routes that are added from now on in: whoever has the scope of the operation.
 * What needs no scope is open to all, and what such a request shows is not read.
 *
 * @throws Error, as the route is added, for one that the table of scopes lacks.
 */
export function requireCallers(app: App, service: string, readCaller: ReadCaller): void {
  nameOperations(app, service);
  app.decorateRequest('caller', undefined);
  app.addHook('onRequest', async (request) => {
    const scope = request.routeOptions.config.operation?.scope;
    if (scope === undefined) return;
    request.caller = await readCaller(request);
    requireScope(request.caller, scope);
  });
}

/** @throws ServiceError UNAUTHENTICATED, and FORBIDDEN naming the scope. */
export function requireScope(caller: Identity | undefined, scope: Scope): void {
  if (caller === undefined) throw commonError('UNAUTHENTICATED');
  if (hasScope(caller, scope)) return;
  throw commonError('FORBIDDEN', {
    message: `The token lacks the scope ${scope}`,
    headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${scope}"` },
    details: { missing: [scope] },
  });
}

/** Who calls a route that needs a scope. @throws ServiceError UNAUTHENTICATED on others. */
export function callerOf({ caller }: Pick<FastifyRequest, 'caller'>): Identity {
  if (caller === undefined) throw commonError('UNAUTHENTICATED');
  return caller;
}
