import type { Clock } from '@rollcall/platform/clock.ts';
import { IDENTITY_TOKEN_TYPE, identityAudience, identityHeaders } from '@rollcall/platform/http/identity.ts';
import { SignJWT } from 'jose';
import type { Caller } from '../admission/caller.ts';
import { type KeyStore, SIGNING_ALGORITHM } from './key-store.ts';

const LIFETIME_SECONDS = 60;
/**
 * One signature serves the requests of a caller to a service for so long: signing costs more than
 * proxying.
 */
const REUSE_MS = 30_000;

export interface BackendIdentityDeps {
  readonly keys: Pick<KeyStore, 'signing'>;
  readonly issuer: string;
  readonly clock: Clock;
}

/** Names and values in turn. */
export type IdentityHeaders = readonly string[];

/** By which a service knows who is calling. */
export interface BackendIdentity {
  headersFor(caller: Caller, service: string): IdentityHeaders | Promise<IdentityHeaders>;
}

interface Signed {
  readonly headers: Promise<IdentityHeaders>;
  readonly untilMs: number;
}

/**
 * Signs the identity of callers for one service each, so that none can pass on to another what it
 * was shown.
 */
export function createBackendIdentity({ keys, issuer, clock }: BackendIdentityDeps): BackendIdentity {
  /** By service. */
  const signedFor = new WeakMap<Caller, Map<string, Signed>>();

  async function sign({ subject, tier, scopes }: Caller, service: string): Promise<IdentityHeaders> {
    const { kid, key } = keys.signing();
    const scope = [...scopes].join(' ');
    const now = Math.floor(clock.now().getTime() / 1000);
    const token = await new SignJWT({ tier, scope })
      .setProtectedHeader({ alg: SIGNING_ALGORITHM, typ: IDENTITY_TOKEN_TYPE, kid })
      .setIssuer(issuer)
      .setAudience(identityAudience(service))
      .setSubject(subject)
      .setIssuedAt(now)
      .setExpirationTime(now + LIFETIME_SECONDS)
      .sign(key);
    const { token: identity, subject: by, tier: of, scopes: allowed } = identityHeaders;
    return [identity, token, by, encodeURIComponent(subject), of, tier, allowed, scope];
  }

  return {
    headersFor(caller, service) {
      const nowMs = clock.monotonicMs();
      const ofCaller = signedFor.get(caller) ?? new Map<string, Signed>();
      const known = ofCaller.get(service);
      if (known !== undefined && nowMs < known.untilMs) return known.headers;
      for (const [name, { untilMs }] of ofCaller) if (nowMs >= untilMs) ofCaller.delete(name);
      const headers = sign(caller, service);
      headers.catch(() => ofCaller.delete(service));
      signedFor.set(caller, ofCaller.set(service, { headers, untilMs: nowMs + REUSE_MS }));
      return headers;
    },
  };
}
