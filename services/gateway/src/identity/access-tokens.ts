import type { Clock } from '@rollcall/platform/clock.ts';
import { ACCESS_TOKEN_TYPE } from '@rollcall/platform/http/identity.ts';
import { isScopeToken } from '@rollcall/platform/http/scopes.ts';
import { decodeProtectedHeader, errors, type JWTPayload, jwtVerify, SignJWT } from 'jose';
import type { Caller, Tier } from '../admission/caller.ts';
import { GatewayError } from '../errors.ts';
import type { ApiClients, KnownClient } from './api-clients.ts';
import { type KeyStore, SIGNING_ALGORITHM } from './key-store.ts';

export interface AccessTokenDeps {
  readonly keys: Pick<KeyStore, 'signing' | 'verifying' | 'isKnown'>;
  readonly clients: Pick<ApiClients, 'find'>;
  readonly clock: Clock;
  /** `iss` and `aud` of the tokens. */
  readonly issuer: string;
  readonly audience: string;
  readonly lifetimeSeconds: number;
  readonly toleranceSeconds: number;
}

/** A token that has been checked. */
export interface CheckedToken {
  readonly caller: Caller;
  /** Whether it is still one, apart from its expiry. Costs no more than a read of memory. */
  holds(): boolean;
  /**
   * Of the monotonic clock: from then on it is checked again before it lets anybody in. Absent:
   * never.
   */
  readonly staleAtMs?: number;
}

/** The gateway's own access tokens: JWTs as in RFC 9068. */
export interface AccessTokens {
  readonly issuer: string;
  /** @param scopes of the client's. */
  issue(client: KnownClient, scopes: readonly string[]): Promise<{ token: string; expiresInSeconds: number }>;
  /** @throws GatewayError INVALID_TOKEN. */
  check(token: string): Promise<CheckedToken>;
  /**
   * Whether a token with these claims, checked before, has not been revoked since: its client, its
   * secret and the key are still there.
   */
  holds(claims: JWTPayload, kid: string | undefined): boolean;
}

const TIERS = ['premium', 'standard', 'free'] satisfies Tier[];

/** The claim that binds a token to the client's present secret. */
export const GENERATION_CLAIM = 'rollcall_generation';

export function createAccessTokens(deps: AccessTokenDeps): AccessTokens {
  const { keys, clients, clock, issuer, audience, lifetimeSeconds, toleranceSeconds } = deps;

  function holds({ sub = '', [GENERATION_CLAIM]: generation }: JWTPayload, kid = ''): boolean {
    const client = clients.find(sub);
    return client !== undefined && client.generation === generation && keys.isKnown(kid);
  }

  return {
    issuer,
    holds,
    async issue(client, scopes) {
      const { kid, key } = keys.signing();
      const now = Math.floor(clock.now().getTime() / 1000);
      const claims = { tier: client.tier, scope: scopes.join(' '), client_id: client.clientId };
      const token = await new SignJWT({ ...claims, [GENERATION_CLAIM]: client.generation })
        .setProtectedHeader({ alg: SIGNING_ALGORITHM, typ: ACCESS_TOKEN_TYPE, kid })
        .setIssuer(issuer)
        .setAudience(audience)
        .setSubject(client.clientId)
        .setIssuedAt(now)
        .setExpirationTime(now + lifetimeSeconds)
        .setJti(crypto.randomUUID())
        .sign(key);
      return { token, expiresInSeconds: lifetimeSeconds };
    },
    async check(token) {
      const kid = kidOf(token);
      const key = await keys.verifying(kid);
      if (key === undefined) throw unknownKey();
      const payload = await verified(
        jwtVerify(token, key, {
          algorithms: [SIGNING_ALGORITHM],
          typ: ACCESS_TOKEN_TYPE,
          issuer,
          audience,
          clockTolerance: toleranceSeconds,
          currentDate: clock.now(),
          requiredClaims: ['sub', 'exp', 'iat'],
        }),
      );
      if (!holds(payload, kid)) throw invalid('It has been revoked');
      // The client's present one may be another: replicas would differ by whether they had seen the
      // token before.
      const tier = tierOf(payload);
      if (tier === undefined) throw invalid('Its tier is not acceptable');
      const caller: Caller = {
        subject: payload.sub ?? '',
        tier,
        scopes: new Set(scopesOf(payload)),
        expiresAtMs: ((payload.exp ?? 0) + toleranceSeconds) * 1000,
        generation: String(payload[GENERATION_CLAIM]),
      };
      return { caller, holds: () => holds(payload, kid) };
    },
  };
}

/** @returns empty where it names none. @throws GatewayError INVALID_TOKEN. */
export function kidOf(token: string): string {
  try {
    const kid: unknown = decodeProtectedHeader(token).kid;
    return typeof kid === 'string' ? kid : '';
  } catch {
    throw invalid('It is no JSON Web Token');
  }
}

/** Of a Date, but for a day: clocks may differ by the tolerance. */
const LATEST_SECONDS = 8.64e12 - 86_400;

/** What jose verifies, with errors of ours. @throws GatewayError INVALID_TOKEN. */
export async function verified(verifying: Promise<{ readonly payload: JWTPayload }>): Promise<JWTPayload> {
  try {
    const { payload } = await verifying;
    for (const claim of ['exp', 'nbf', 'iat'] as const) {
      // jose accepts any number.
      if (Math.abs(payload[claim] ?? 0) > LATEST_SECONDS) throw invalid(`Its ${claim} is not acceptable`);
    }
    return payload;
  } catch (err) {
    if (err instanceof errors.JWTExpired) throw invalid('It has expired', err);
    if (err instanceof errors.JWTClaimValidationFailed) throw invalid(`Its ${err.claim} is not acceptable`, err);
    if (err instanceof errors.JOSEAlgNotAllowed) throw invalid('Its algorithm is not acceptable', err);
    if (err instanceof errors.JWKSNoMatchingKey) throw unknownKey(err);
    if (err instanceof errors.JOSEError) throw invalid('Its signature does not fit', err);
    throw err;
  }
}

export function unknownKey(cause?: unknown): GatewayError {
  return invalid('It was signed with a key that is not known', cause);
}

/**
 * `scope` as in RFC 9068, section 2.2.3: separated by spaces. Other issuers have a list too, or
 * call it `scp`. What is no scope is left out: it could not even be sent to a service.
 *
 * @throws GatewayError INVALID_TOKEN where it is neither text nor a list of texts.
 */
export function scopesOf({ scope, scp }: JWTPayload): readonly string[] {
  const given: unknown = scope ?? scp ?? '';
  const list: readonly unknown[] =
    typeof given === 'string' ? given.split(' ') : Array.isArray(given) ? given : [given];
  if (!list.every((each) => typeof each === 'string')) throw invalid('Its scope is not acceptable');
  return list.filter(isScopeToken);
}

/** @returns undefined where the claim names none. */
export function tierOf({ tier }: JWTPayload): Tier | undefined {
  return TIERS.find((each) => each === tier);
}

/** @param why a sentence; it goes to the client and holds nothing of the token. */
export function invalid(why: string, cause?: unknown): GatewayError {
  return new GatewayError('INVALID_TOKEN', {
    message: `The bearer token is not valid. ${why}. Get a new one.`,
    headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
    cause,
  });
}
