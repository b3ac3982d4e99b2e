import type { Clock } from '@rollcall/platform/clock.ts';
import { decodeJwt } from 'jose';
import type { Authenticator } from '../policy/caller.ts';
import { type AccessTokens, type CheckedToken, invalid } from './access-tokens.ts';
import type { TokenCheck } from './external-issuers.ts';

/** No token that is accepted anywhere is longer; who sends one wants to keep us busy. */
const TOKEN_MAX_LENGTH = 8192;

export interface AuthenticatorDeps {
  readonly own: AccessTokens;
  readonly external: ReadonlyMap<string, TokenCheck>;
  readonly clock: Clock;
  /** How many checked tokens are remembered. */
  readonly capacity: number;
}

/**
 * Checks tokens, and remembers those that passed until they expire. A token that is remembered is asked at each use whether it
 * has been revoked. When there are too many, the ones that were checked first are forgotten.
 */
export function createAuthenticator({ own, external, clock, capacity }: AuthenticatorDeps): Authenticator {
  const checked = new Map<string, CheckedToken>();

  function remembered(token: string): CheckedToken | undefined {
    const known = checked.get(token);
    if (known === undefined) return undefined;
    if (clock.now().getTime() < known.caller.expiresAtMs && known.holds()) return known;
    checked.delete(token);
    return undefined;
  }

  function remember(token: string, result: CheckedToken): void {
    checked.set(token, result);
    if (checked.size <= capacity) return;
    const [oldest] = checked.keys();
    if (oldest !== undefined) checked.delete(oldest);
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
      return known === undefined ? check(token).then(({ caller }) => caller) : known.caller;
    },
    stillHolds(token) {
      if (remembered(token) !== undefined) return true;
      const { iss, exp = 0, ...claims } = decodeJwt(token);
      // Revoked, expired, or only forgotten here for want of room.
      return clock.now().getTime() < exp * 1000 && (iss !== own.issuer || own.holds(claims));
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
