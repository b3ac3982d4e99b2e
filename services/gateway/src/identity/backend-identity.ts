import type { Clock } from '@rollcall/platform/clock.ts';
import { IDENTITY_TOKEN_TYPE, identityAudience, identityHeaders } from '@rollcall/platform/http/identity.ts';
import { SignJWT } from 'jose';
import type { Caller } from '../admission/caller.ts';
import { GENERATION_CLAIM } from './access-tokens.ts';
import { type KeyStore, SIGNING_ALGORITHM } from './key-store.ts';

const LIFETIME_SECONDS = 60;
const LONGEST_SECONDS = 86_400;
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

/** Who acts for a subject, and for whom that one was acting before (RFC 8693, section 4.1). */
interface Act {
  readonly sub: string;
  readonly act?: unknown;
}

/** An identity that was got for another proof. */
export interface ExchangedIdentity {
  readonly token: string;
  readonly expiresInSeconds: number;
}

/** By which a service knows who is calling. */
export interface BackendIdentity {
  headersFor(caller: Caller, service: string): IdentityHeaders | Promise<IdentityHeaders>;
  /** The same for what lasts: it ends with the caller's proof, or after a day. */
  lastingHeadersFor(caller: Caller, service: string): Promise<IdentityHeaders>;
  /** An identity with which another acts for the caller. It ends no later than the caller's proof. */
  actingFor(caller: Caller, service: string, act: Act): Promise<ExchangedIdentity>;
}

interface Signed {
  readonly headers: Promise<IdentityHeaders>;
  readonly untilMs: number;
}

/** Seconds since 1970. */
interface Signing {
  readonly now: number;
  readonly exp: number;
  readonly act?: Act;
  /** With which it ends. */
  readonly generation?: string | undefined;
}

/**
 * Signs the identity of callers for one service each, so that none can pass on to another what it
 * was shown.
 */
export function createBackendIdentity({ keys, issuer, clock }: BackendIdentityDeps): BackendIdentity {
  /** By service. */
  const signedFor = new WeakMap<Caller, Map<string, Signed>>();

  function sign(
    { subject, tier, scopes }: Caller,
    service: string,
    { now, exp, act, generation }: Signing,
  ): Promise<string> {
    const { kid, key } = keys.signing();
    return new SignJWT({
      tier,
      scope: [...scopes].join(' '),
      ...(act === undefined ? {} : { act }),
      ...(generation === undefined ? {} : { [GENERATION_CLAIM]: generation }),
    })
      .setProtectedHeader({ alg: SIGNING_ALGORITHM, typ: IDENTITY_TOKEN_TYPE, kid })
      .setIssuer(issuer)
      .setAudience(identityAudience(service))
      .setSubject(subject)
      .setIssuedAt(now)
      .setExpirationTime(exp)
      .sign(key);
  }

  async function signHeaders(
    caller: Caller,
    service: string,
    { lastsSeconds, generation }: Pick<Signing, 'generation'> & { readonly lastsSeconds: number },
  ): Promise<IdentityHeaders> {
    const now = nowSeconds();
    const signed = await sign(caller, service, { now, exp: now + lastsSeconds, generation });
    const { token, subject, tier, scopes } = identityHeaders;
    const scope = [...caller.scopes].join(' ');
    return [token, signed, subject, encodeURIComponent(caller.subject), tier, caller.tier, scopes, scope];
  }

  const nowSeconds = () => Math.floor(clock.now().getTime() / 1000);

  return {
    headersFor(caller, service) {
      const nowMs = clock.monotonicMs();
      const ofCaller = signedFor.get(caller) ?? new Map<string, Signed>();
      const known = ofCaller.get(service);
      if (known !== undefined && nowMs < known.untilMs) return known.headers;
      for (const [name, { untilMs }] of ofCaller) if (nowMs >= untilMs) ofCaller.delete(name);
      const headers = signHeaders(caller, service, { lastsSeconds: LIFETIME_SECONDS });
      headers.catch(() => ofCaller.delete(service));
      signedFor.set(caller, ofCaller.set(service, { headers, untilMs: nowMs + REUSE_MS }));
      return headers;
    },
    lastingHeadersFor(caller, service) {
      const leftSeconds = Math.floor((caller.expiresAtMs - clock.now().getTime()) / 1000);
      const { generation } = caller;
      return signHeaders(caller, service, { lastsSeconds: Math.min(leftSeconds, LONGEST_SECONDS), generation });
    },
    async actingFor(caller, service, act) {
      const now = nowSeconds();
      const exp = Math.min(now + LIFETIME_SECONDS, Math.floor(caller.expiresAtMs / 1000));
      return { token: await sign(caller, service, { now, exp, act }), expiresInSeconds: exp - now };
    },
  };
}
