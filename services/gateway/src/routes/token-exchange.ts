import { hasScope } from '@rollcall/platform/http/scopes.ts';
import { GatewayError } from '../errors.ts';
import type { KnownClient } from '../identity/api-clients.ts';
import type { ExchangeRequest, IdentityExchange } from '../identity/identity-exchange.ts';
import { REGISTRY } from '../upstream/discovery/targets.ts';
import { OAuthError } from './token-request.ts';

/** The `grant_type` (RFC 8693, section 2.1). */
export const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';

/** What a client needs to exchange anything. */
const EXCHANGE_SCOPE = 'identities:exchange';
const IDENTITY_TYPE = 'urn:ietf:params:oauth:token-type:jwt';
/** By `subject_token_type`. */
const KINDS: ReadonlyMap<string, ExchangeRequest['kind']> = new Map([
  [IDENTITY_TYPE, 'identity'],
  ['urn:ietf:params:oauth:token-type:access_token', 'access token'],
]);

export interface TokenExchangeDeps {
  readonly exchange: IdentityExchange;
  readonly targets: { findRegistered(service: string): unknown; isComplete(): boolean };
}

/**
 * The token exchange grant: the client acts for who was shown to it, at one service (RFC 8693).
 *
 * The registry is no such service: somebody else may have registered its name.
 *
 * @throws OAuthError, and GatewayError where for now nobody can tell.
 */
export async function exchangeToken(
  { exchange, targets }: TokenExchangeDeps,
  client: Pick<KnownClient, 'clientId' | 'scopes'>,
  form: URLSearchParams,
): Promise<object> {
  if (!hasScope({ scopes: new Set(client.scopes) }, EXCHANGE_SCOPE)) {
    throw new OAuthError('unauthorized_client', `The client lacks the scope ${EXCHANGE_SCOPE}`);
  }
  const { subjectToken, kind, service } = requestOf(form);
  if (service === REGISTRY || targets.findRegistered(service) === undefined) {
    if (service !== REGISTRY && !targets.isComplete()) throw new GatewayError('DISCOVERY_UNAVAILABLE');
    throw new OAuthError('invalid_target', 'No service is registered by the name that audience has');
  }
  try {
    const { token, expiresInSeconds } = await exchange.exchange({
      clientId: client.clientId,
      subjectToken,
      kind,
      service,
    });
    // No access token: it counts at the service alone (section 2.2.1).
    return {
      access_token: token,
      issued_token_type: IDENTITY_TYPE,
      token_type: 'N_A',
      expires_in: expiresInSeconds,
    };
  } catch (err) {
    if (!(err instanceof GatewayError) || err.code !== 'INVALID_TOKEN') throw err;
    // Section 2.2.2 has this word for it, not invalid_grant.
    throw new OAuthError('invalid_request', err.message.replace('bearer token', 'subject_token'));
  }
}

function requestOf(form: URLSearchParams): Omit<ExchangeRequest, 'clientId'> {
  const [subjectToken, type, service] = [
    form.get('subject_token'),
    form.get('subject_token_type'),
    form.get('audience'),
  ];
  if (subjectToken === null || type === null || service === null) {
    throw new OAuthError('invalid_request', 'Give subject_token, subject_token_type and audience');
  }
  const kind = KINDS.get(type);
  if (kind === undefined) {
    throw new OAuthError('invalid_request', `The subject_token_type is one of: ${[...KINDS.keys()].join(', ')}`);
  }
  const asked = form.get('requested_token_type') ?? IDENTITY_TYPE;
  if (asked !== IDENTITY_TYPE) {
    throw new OAuthError('invalid_request', `The only requested_token_type is ${IDENTITY_TYPE}`);
  }
  if (form.has('actor_token')) {
    throw new OAuthError('invalid_request', 'The client itself is who acts: leave out actor_token');
  }
  // An identity has the scopes that its subject has.
  if (form.has('scope'))
    throw new OAuthError('invalid_scope', 'The scopes are those of subject_token: leave out scope');
  return { subjectToken, kind, service };
}
