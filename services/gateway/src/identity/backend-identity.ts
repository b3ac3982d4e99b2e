import type { Clock } from '@rollcall/platform/clock.ts';
import { IDENTITY_TOKEN_TYPE, identityAudience, identityHeaders } from '@rollcall/platform/http/identity.ts';
import { SignJWT } from 'jose';
import type { Caller } from '../policy/caller.ts';
import { type KeyStore, SIGNING_ALGORITHM } from './key-store.ts';

const LIFETIME_SECONDS = 60;
/** One signature serves the requests of a caller to a service for so long: signing costs more than proxying. */
const REUSE_MS = 30_000;

export interface BackendIdentityDeps {
  readonly keys: Pick<KeyStore, 'signing'>;
  readonly issuer: string;
  readonly clock: Clock;
}

/** Names and values in turn. */
export type IdentityHeaders = readonly string[];

/** What tells a service who is calling. */
export interface BackendIdentity {
  /** @returns at once where the same was asked for not long ago. */
  headersFor(caller: Caller, service: string): IdentityHeaders | Promise<IdentityHeaders>;
}

interface Signed {
  readonly headers: IdentityHeaders | Promise<IdentityHeaders>;
  readonly untilMs: number;
}

/** Signs the identity of callers for one service each, so that none can pass on to another what it was shown. */
export function createBackendIdentity({ keys, issuer, clock }: BackendIdentityDeps): BackendIdentity {
  const signed = new WeakMap<Caller, Map<string, Signed>>();

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
      const ofCaller = signed.get(caller) ?? new Map<string, Signed>();
      if (ofCaller.size === 0) signed.set(caller, ofCaller);
      const known = ofCaller.get(service);
      const nowMs = clock.monotonicMs();
      if (known !== undefined && nowMs < known.untilMs) return known.headers;
      const untilMs = nowMs + REUSE_MS;
      const headers = sign(caller, service).then(
        (made) => {
          ofCaller.set(service, { headers: made, untilMs });
          return made;
        },
        (err: unknown) => {
          ofCaller.delete(service);
          throw err;
        },
      );
      ofCaller.set(service, { headers, untilMs });
      return headers;
    },
  };
}
