import type { Clock } from '@rollcall/platform/clock.ts';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import type { Authenticator } from '../admission/caller.ts';
import { type AccessTokens, type CheckedToken, invalid } from './access-tokens.ts';
import type { TokenCheck } from './external-issuers.ts';

/** No token that is accepted anywhere is longer; who sends one wants to keep us busy. */
export const TOKEN_MAX_LENGTH = 8192;

/** Of checked tokens that are remembered. */
export interface TokenCapacity {
  readonly tokens: number;
  /** Of all of them together: another issuer's may be ten times as long as the gateway's own. */
  readonly characters: number;
}

export interface AuthenticatorDeps {
  readonly own: AccessTokens;
  readonly external: ReadonlyMap<string, TokenCheck>;
  readonly clock: Clock;
  readonly capacity: TokenCapacity;
}

/**
 * Checks tokens, and remembers valid ones until they expire. A token that is remembered is asked at
 * each use whether it has been revoked. When there are too many, the ones that were checked first
 * are forgotten.
 */
export function createAuthenticator({ own, external, clock, capacity }: AuthenticatorDeps): Authenticator {
  const checked = new Map<string, CheckedToken>();
  let characters = 0;

  function remembered(token: string): CheckedToken | undefined {
    const known = checked.get(token);
    if (known === undefined) return undefined;
    if (clock.now().getTime() < known.caller.expiresAtMs && known.holds()) return known;
    forget(token);
    return undefined;
  }

  function forget(token: string): void {
    if (checked.delete(token)) characters -= token.length;
  }

  function remember(token: string, result: CheckedToken): void {
    // It may have been checked twice at once.
    forget(token);
    checked.set(token, result);
    characters += token.length;
    for (const oldest of checked.keys()) {
      if (checked.size <= capacity.tokens && characters <= capacity.characters) return;
      forget(oldest);
    }
  }

  async function check(token: string): Promise<CheckedToken> {
    if (token.length > TOKEN_MAX_LENGTH) throw invalid('It is too long');
    const issuer = issuerOf(token);
    const result = await (issuer === own.issuer ? own.check(token) : (external.get(issuer) ?? unknownIssuer)(token));
    remember(token, result);
    return result;
  }

  return {
    authenticate(token) {
      const known = remembered(token);
      const isStale = known?.staleAtMs !== undefined && clock.monotonicMs() >= known.staleAtMs;
      return known === undefined || isStale ? check(token).then(({ caller }) => caller) : known.caller;
    },
    stillHolds(token) {
      if (remembered(token) !== undefined) return true;
      const { iss, exp = 0, ...claims } = decodeJwt(token);
      // Revoked, expired, or only forgotten here because there were too many.
      const isExpired = clock.now().getTime() >= exp * 1000;
      return !isExpired && (iss !== own.issuer || own.holds(claims, decodeProtectedHeader(token).kid));
    },
  };
}

/** Whose token it says it is; nothing is believed of it yet. @throws GatewayError INVALID_TOKEN. */
function issuerOf(token: string): string {
  try {
    return decodeJwt(token).iss ?? '';
  } catch {
    throw invalid('It is no JSON Web Token');
  }
}

async function unknownIssuer(): Promise<never> {
  throw invalid('Its iss is not acceptable');
}
