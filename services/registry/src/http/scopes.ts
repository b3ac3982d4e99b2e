import { identityHeaders, unverifiedScopes } from '@rollcall/platform/http/identity.ts';
import { hasScope, type Operation, restOperation } from '@rollcall/platform/http/scopes.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import { RegistryError } from '../common/errors.ts';
import type { LetInBy } from './authentication.ts';

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
export function requireScope({ scope }: Operation, { service, identity }: LetInBy): void {
  if (scope === undefined || (service === undefined && identity === undefined)) return;
  if (identity === undefined) throw new RegistryError('UNAUTHENTICATED');
  if (hasScope({ scopes: unverifiedScopes(identity) }, scope)) return;
  throw new RegistryError('INSUFFICIENT_SCOPE', `The token lacks the scope ${scope}`);
}

/**
 * Requires scopes on every route that is added to the app from now on.
 *
 * @throws Error for a route that the table of scopes lacks.
 */
export function requireScopes(app: App): void {
  const below = (url: string) => url.slice(app.prefix.length);
  app.addHook('onRoute', ({ method, url }) => {
    for (const each of [method].flat()) {
      if (restOperation(each, below(url)) !== undefined) continue;
      throw new Error(`The table of scopes lacks ${each} ${below(url)}`);
    }
  });
  app.addHook('onRequest', ({ headers, method, routeOptions }, _reply, done) => {
    const operation = restOperation(method, below(routeOptions.url ?? ''));
    const letInBy = {
      service: headers[identityHeaders.service]?.toString(),
      identity: headers[identityHeaders.token]?.toString(),
    };
    if (operation !== undefined) requireScope(operation, letInBy);
    done();
  });
}
