import type { Clock } from '@rollcall/platform/clock.ts';
import { createKeySet } from '@rollcall/platform/http/key-sets.ts';
import { type JWTPayload, jwtVerify } from 'jose';
import { type Dispatcher, fetch } from 'undici';
import type { Caller, Tier } from '../admission/caller.ts';
import { GatewayError } from '../errors.ts';
import { type CheckedToken, invalid, scopesOf, tierOf, verified } from './access-tokens.ts';

/** An identity provider whose tokens are accepted besides the gateway's own. */
export interface ExternalIssuer {
  /** `iss` of its tokens. */
  readonly issuer: string;
  readonly audience: string;
  readonly jwksUrl: string;
  readonly algorithms: readonly string[];
  /** Of tokens whose claim `tier` names none. */
  readonly defaultTier: Tier;
}

export interface ExternalIssuersDeps {
  readonly issuers: readonly ExternalIssuer[];
  readonly clock: Clock;
  readonly toleranceSeconds: number;
  /** Fetches key sets. */
  readonly dispatcher: Dispatcher;
}

/** Checks tokens of one issuer. */
export type TokenCheck = (token: string) => Promise<CheckedToken>;

const SUBJECT_MAX_LENGTH = 256;
/** As long as a key set is kept: a key that its issuer withdraws is asked for again. */
const REMEMBERED_MS = 600_000;

/**
 * By issuer. Subjects of different issuers are never the same caller: theirs have the issuer before
 * them.
 */
export function createExternalIssuers(deps: ExternalIssuersDeps): ReadonlyMap<string, TokenCheck> {
  return new Map(deps.issuers.map((issuer) => [issuer.issuer, checkOf(issuer, deps)]));
}

function checkOf(config: ExternalIssuer, { clock, toleranceSeconds, dispatcher }: ExternalIssuersDeps): TokenCheck {
  const keySet = createKeySet(new URL(config.jwksUrl), {
    clock,
    fetch: (url, options) => fetch(url, { ...options, dispatcher }),
  });
  return async (token) => {
    const payload = await verified(
      jwtVerify(token, keySet, {
        algorithms: [...config.algorithms],
        issuer: config.issuer,
        audience: config.audience,
        clockTolerance: toleranceSeconds,
        currentDate: clock.now(),
        requiredClaims: ['sub', 'exp'],
      }),
    ).catch((err: unknown) => {
      if (err instanceof GatewayError) throw err;
      throw new GatewayError('IDENTITY_UNAVAILABLE', { cause: err });
    });
    const caller = callerOf(payload, config, toleranceSeconds);
    return { caller, holds: () => true, staleAtMs: clock.monotonicMs() + REMEMBERED_MS };
  };
}

function callerOf(payload: JWTPayload, { issuer, defaultTier }: ExternalIssuer, toleranceSeconds: number): Caller {
  const { exp = 0 } = payload;
  // What another issuer signs may be of any type, whatever the library's types say.
  const sub: unknown = payload.sub;
  if (typeof sub !== 'string' || sub === '' || sub.length > SUBJECT_MAX_LENGTH || !sub.isWellFormed()) {
    throw invalid('Its sub is not acceptable');
  }
  return {
    subject: `${issuer}#${sub}`,
    tier: tierOf(payload) ?? defaultTier,
    scopes: new Set(scopesOf(payload)),
    expiresAtMs: (exp + toleranceSeconds) * 1000,
  };
}
