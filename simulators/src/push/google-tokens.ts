import type { KeyObject } from 'node:crypto';
import { randomBytes } from 'node:crypto';
import type { Clock } from '@rollcall/platform/clock.ts';
import { errors, type JWTPayload, jwtVerify } from 'jose';

const GRANT_TYPE = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const GOOGLE_AUDIENCE = 'https://oauth2.googleapis.com/token';
const SCOPES: ReadonlySet<string> = new Set([
  'https://www.googleapis.com/auth/firebase.messaging',
  'https://www.googleapis.com/auth/cloud-platform',
]);
const LONGEST_ASSERTION_SECONDS = 3600;

export interface ServiceAccount {
  readonly clientEmail: string;
  readonly keyId: string;
  readonly publicKey: KeyObject;
}

/** An answer of the token endpoint. */
type TokenAnswer =
  | { readonly access_token: string; readonly expires_in: number; readonly token_type: 'Bearer' }
  | { readonly error: string; readonly error_description: string };

/** Access tokens, as Google's authorization server gives them for signed assertions (RFC 7523). */
export interface TokenServer {
  /** @param audience what the assertion may be for, beside Google's own endpoint. */
  grant(form: URLSearchParams, audience: string): Promise<TokenAnswer>;
  isValid(accessToken: string): boolean;
  revokeAll(): void;
}

export function createTokenServer(account: ServiceAccount, tokenSeconds: number, clock: Clock): TokenServer {
  /** When each one ends, in milliseconds since 1970. */
  const ends = new Map<string, number>();
  return {
    async grant(form, audience) {
      if (form.get('grant_type') !== GRANT_TYPE) {
        return { error: 'unsupported_grant_type', error_description: `Invalid grant_type: ${form.get('grant_type')}` };
      }
      const fault = await assertionFault(form.get('assertion') ?? '', account, { audience, now: clock.now() });
      if (fault !== undefined) return fault;
      const token = `ya29.${randomBytes(64).toString('base64url')}`;
      ends.set(token, clock.now().getTime() + tokenSeconds * 1000);
      return { access_token: token, expires_in: tokenSeconds, token_type: 'Bearer' };
    },
    isValid: (token) => (ends.get(token) ?? 0) > clock.now().getTime(),
    revokeAll: () => ends.clear(),
  };
}

async function assertionFault(
  assertion: string,
  { clientEmail, keyId, publicKey }: ServiceAccount,
  { audience, now }: { audience: string; now: Date },
): Promise<TokenAnswer | undefined> {
  try {
    const { payload, protectedHeader } = await jwtVerify(assertion, publicKey, {
      algorithms: ['RS256'],
      issuer: clientEmail,
      audience: [audience, GOOGLE_AUDIENCE],
      currentDate: now,
      requiredClaims: ['iat', 'exp'],
    });
    if (protectedHeader.kid !== undefined && protectedHeader.kid !== keyId)
      return invalidGrant('Invalid JWT Signature.');
    if (!isShortLived(payload, now)) return invalidGrant(SHORT_LIVED);
    if (hasScope(payload)) return undefined;
    const error_description = 'Invalid OAuth scope or ID token audience provided.';
    return { error: 'invalid_scope', error_description };
  } catch (error) {
    if (error instanceof errors.JWTExpired) return invalidGrant(SHORT_LIVED);
    if (error instanceof errors.JWTClaimValidationFailed) {
      if (error.claim === 'iss') return invalidGrant('Invalid grant: account not found');
      return invalidGrant(error.claim === 'aud' ? 'Invalid JWT: Failed audience check.' : SHORT_LIVED);
    }
    return invalidGrant('Invalid JWT Signature.');
  }
}

const SHORT_LIVED =
  'Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat and exp values in the JWT claim.';

function isShortLived({ iat = 0, exp = 0 }: JWTPayload, now: Date): boolean {
  const isFromTheFuture = iat > now.getTime() / 1000 + 300;
  return exp - iat <= LONGEST_ASSERTION_SECONDS && !isFromTheFuture;
}

function hasScope({ scope }: JWTPayload): boolean {
  return typeof scope === 'string' && scope.split(' ').some((word) => SCOPES.has(word));
}

function invalidGrant(description: string): TokenAnswer {
  return { error: 'invalid_grant', error_description: description };
}
