import type { Clock } from '@rollcall/platform/clock.ts';
import { IDENTITY_TOKEN_TYPE, identityAudience } from '@rollcall/platform/http/identity.ts';
import { jwtVerify } from 'jose';
import type { Authenticator, Caller } from '../admission/caller.ts';
import { GENERATION_CLAIM, invalid, kidOf, scopesOf, tierOf, unknownKey, verified } from './access-tokens.ts';
import type { ApiClients } from './api-clients.ts';
import { TOKEN_MAX_LENGTH } from './authenticator.ts';
import type { BackendIdentity, ExchangedIdentity } from './backend-identity.ts';
import { type KeyStore, SIGNING_ALGORITHM } from './key-store.ts';

export interface IdentityExchangeDeps {
  readonly keys: Pick<KeyStore, 'verifying'>;
  readonly authenticator: Pick<Authenticator, 'authenticate'>;
  readonly backend: Pick<BackendIdentity, 'actingFor'>;
  readonly clients: Pick<ApiClients, 'find'>;
  readonly issuer: string;
  readonly clock: Clock;
}

/** What a client shows to act for somebody at a service. */
export interface ExchangeRequest {
  /** Id of the client; also the registered name by which it was shown identities. */
  readonly clientId: string;
  readonly subjectToken: string;
  /** An identity that was shown to the client, or an access token. */
  readonly kind: 'identity' | 'access token';
  readonly service: string;
}

/** Exchanges the proof of who calls for an identity at one other service (RFC 8693). */
export interface IdentityExchange {
  /** @throws GatewayError INVALID_TOKEN, and what the check of an access token throws. */
  exchange(request: ExchangeRequest): Promise<ExchangedIdentity>;
}

interface Subject {
  readonly caller: Caller;
  /** Who acts already. */
  readonly act?: unknown;
}

export function createIdentityExchange(deps: IdentityExchangeDeps): IdentityExchange {
  const { keys, clients, authenticator, backend, issuer, clock } = deps;

  /** Without tolerance: an identity has half of its time left when it is shown. */
  async function shownTo(clientId: string, token: string): Promise<Subject> {
    if (token.length > TOKEN_MAX_LENGTH) throw invalid('It is too long');
    const key = await keys.verifying(kidOf(token));
    if (key === undefined) throw unknownKey();
    const claims = await verified(
      jwtVerify(token, key, {
        algorithms: [SIGNING_ALGORITHM],
        typ: IDENTITY_TOKEN_TYPE,
        issuer,
        audience: identityAudience(clientId),
        currentDate: clock.now(),
        requiredClaims: ['sub', 'exp', 'iat'],
      }),
    );
    const { sub: subject = '', exp = 0, [GENERATION_CLAIM]: generation } = claims;
    // One that lasts as long as a token ends with it, too.
    if (generation !== undefined && clients.find(subject)?.generation !== generation)
      throw invalid('It has been revoked');
    const tier = tierOf(claims);
    if (tier === undefined) throw invalid('Its tier is not acceptable');
    const caller = { subject, tier, scopes: new Set(scopesOf(claims)), expiresAtMs: exp * 1000 };
    return { caller, act: claims['act'] };
  }

  return {
    async exchange({ clientId, subjectToken, kind, service }) {
      const { caller, act }: Subject =
        kind === 'identity'
          ? await shownTo(clientId, subjectToken)
          : { caller: await authenticator.authenticate(subjectToken) };
      const exchanged = await backend.actingFor(caller, service, {
        sub: clientId,
        ...(act === undefined ? {} : { act }),
      });
      if (exchanged.token.length > TOKEN_MAX_LENGTH) throw invalid('An identity made of it would be too long');
      return exchanged;
    },
  };
}
