import { hasScope } from '@rollcall/platform/http/scopes.ts';
import { GatewayError } from '../errors.ts';
import { unauthenticated } from './bearer.ts';
import type { Caller } from './caller.ts';

/** @returns the scopes that the token of a caller lacks. */
export function missingScopes(required: readonly string[], caller: Caller): readonly string[] {
  return required.filter((scope) => !hasScope(caller, scope));
}

/**
 * Where anybody may come without a token, what needs a scope still needs one.
 *
 * @param caller undefined: no token was shown.
 * @throws GatewayError UNAUTHENTICATED, INSUFFICIENT_SCOPE.
 */
export function requireScopes(required: readonly string[], caller: Caller | undefined): void {
  if (required.length === 0) return;
  if (caller === undefined) throw unauthenticated();
  const missing = missingScopes(required, caller);
  if (missing.length === 0) return;
  throw new GatewayError('INSUFFICIENT_SCOPE', {
    message: `The token lacks the scope ${missing.join(', ')}`,
    headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${required.join(' ')}"` },
    details: { missing },
  });
}
