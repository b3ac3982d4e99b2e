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
const TURN_MS = REUSE_MS / 2;

export interface BackendIdentityDeps {
  readonly keys: Pick<KeyStore, 'signing'>;
  readonly issuer: string;
  readonly clock: Clock;
}

/** Names and values in turn. */
export type IdentityHeaders = readonly string[];

/** By which a service knows who is calling. */
export interface BackendIdentity {
  /** @returns at once where the same was asked for not long ago. */
  headersFor(caller: Caller, service: string): IdentityHeaders | Promise<IdentityHeaders>;
}

/** By service. */
type Signed = Map<string, IdentityHeaders | Promise<IdentityHeaders>>;

/**
 * Signs the identity of callers for one service each, so that none can pass on to another what it
 * was shown. What is signed within {@link TURN_MS} is kept together, and dropped together: a
 * caller's token may be remembered for an hour, and there may be many of both.
 */
export function createBackendIdentity({ keys, issuer, clock }: BackendIdentityDeps): BackendIdentity {
  let young = new WeakMap<Caller, Signed>();
  let old = new WeakMap<Caller, Signed>();
  let turnAtMs = Number.NEGATIVE_INFINITY;

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

  function turn(): void {
    const nowMs = clock.monotonicMs();
    if (nowMs < turnAtMs) return;
    const isInTime = nowMs < turnAtMs + TURN_MS;
    old = isInTime ? young : new WeakMap();
    young = new WeakMap();
    turnAtMs = (isInTime ? turnAtMs : nowMs) + TURN_MS;
  }

  return {
    headersFor(caller, service) {
      turn();
      const known = young.get(caller)?.get(service) ?? old.get(caller)?.get(service);
      if (known !== undefined) return known;
      const ofCaller: Signed = young.get(caller) ?? new Map();
      if (ofCaller.size === 0) young.set(caller, ofCaller);
      const headers = sign(caller, service).then(
        (made) => {
          ofCaller.set(service, made);
          return made;
        },
        (err: unknown) => {
          ofCaller.delete(service);
          throw err;
        },
      );
      ofCaller.set(service, headers);
      return headers;
    },
  };
}
