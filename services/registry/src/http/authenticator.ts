import { type IdentityReader, identityHeaders } from '@rollcall/platform/http/identity.ts';
import { RegistryError } from '../common/errors.ts';
import type { Authenticate } from './authentication.ts';

export interface AuthenticatorDeps {
  /** @returns the service account of a token, or undefined. */
  readonly review: (token: string) => Promise<string | undefined>;
  /** Undefined: who comes by a gateway is nobody. */
  readonly gateway: Pick<IdentityReader, 'read'> | undefined;
}

/**
 * Service accounts by their tokens, clients of the gateway by what it has signed of them. A token
 * that is shown decides alone.
 */
export function authenticator({ review, gateway }: AuthenticatorDeps): Authenticate {
  return async ({ token, identity }) => {
    if (token !== undefined) return review(token);
    if (identity === undefined || gateway === undefined) return undefined;
    try {
      const caller = await gateway.read({ headers: { [identityHeaders.token]: identity } });
      // A service account's name begins with `system:`.
      return caller === undefined ? undefined : `rollcall:client:${caller.subject}`;
    } catch (err) {
      throw new RegistryError('GATEWAY_KEYS_UNAVAILABLE', undefined, { cause: err });
    }
  };
}
