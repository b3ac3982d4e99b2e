import type { IncomingMessage } from 'node:http';
import type { WebSocket } from 'ws';
import { type Arrived, type Asked, admit } from '../../admission/admission.ts';
import type { Authenticator, Holder } from '../../admission/caller.ts';
import type { TrustedProxies } from '../../admission/client-address.ts';
import type { Limits } from '../../admission/limits.ts';
import { GatewayError } from '../../errors.ts';
import type { BackendIdentity } from '../../identity/backend-identity.ts';
import type { Targets } from '../../upstream/discovery/targets.ts';
import { splitTarget } from '../../upstream/routing/path.ts';
import { type Destination, type Route, scopesFor } from '../../upstream/routing/table.ts';
import { requestOrigin } from '../request-origin.ts';
import { findTarget } from '../rest/find-target.ts';
import { requestHeaders } from '../rest/headers.ts';
import type { AskedUpgrade } from '../websocket/asked-upgrade.ts';
import { offeredBy } from '../websocket/credentials.ts';
import { GRAPHQL_PROTOCOL } from './connection-init.ts';
import { openServiceSocket, type ServiceSocketDeps } from './service-socket.ts';

export interface GrantsDeps extends ServiceSocketDeps {
  readonly authenticator: Authenticator;
  /** Of requests: an upgrade is one. */
  readonly requestLimits: Pick<Limits, 'check'>;
  readonly route: Route;
  readonly targets: Targets;
  readonly identity: BackendIdentity;
  readonly trustedProxies: TrustedProxies;
}

/** An upgrade that is let in. */
export interface Grant {
  readonly asked: AskedUpgrade;
  /** Undefined: nobody has to say who it is, or the client does so in its first message. */
  readonly holder: Holder | undefined;
  readonly showsTokenLater: boolean;
  readonly destination: Destination | undefined;
  /** With its question mark, or empty. */
  readonly query: string;
}

interface AskedPath extends Asked, Pick<Grant, 'destination' | 'query' | 'showsTokenLater'> {}

/**
 * Lets an upgrade in, or not: as a GET of its path.
 *
 * @param token that is shown after the upgrade. @throws GatewayError as `admit`.
 */
export async function grant(deps: GrantsDeps, asked: AskedUpgrade, token?: string): Promise<Grant> {
  const { request } = asked;
  const arrived: Arrived = {
    remoteAddress: request.socket.remoteAddress,
    forwardedFor: request.headers['x-forwarded-for'],
    token: () => token ?? offeredBy(request).token,
    onCounted: (counted) => asked.counted(counted),
  };
  const { authenticator, requestLimits: limits, route } = deps;
  const admitted = await admit({ authenticator, limits }, arrived, () => readUpgrade(request, route, token));
  const { destination, query, showsTokenLater } = admitted.asked;
  return { asked, holder: admitted.holder, showsTokenLater, destination, query };
}

/** @throws GatewayError INVALID_PATH, INVALID_REQUEST. */
function readUpgrade(request: IncomingMessage, route: Route, token: string | undefined): AskedPath {
  const { path, query } = splitTarget(request.url ?? '');
  const destination = route(path);
  const { limits, anonymous = false } = destination?.rule ?? {};
  const offered = offeredBy(request);
  const showsNone = token === undefined && offered.token === undefined;
  const showsTokenLater = showsNone && !anonymous && offered.protocols.includes(GRAPHQL_PROTOCOL);
  const scopes = destination === undefined || showsTokenLater ? [] : scopesFor(destination, 'GET');
  return { destination, query, scopes, limits, anonymous: anonymous || showsTokenLater, showsTokenLater };
}

/** Opens the WebSocket to the service. @throws as {@link openServiceSocket}; GatewayError where there is none. */
export async function openGranted(deps: GrantsDeps, { asked, holder, destination, query }: Grant): Promise<WebSocket> {
  const { request, names } = asked;
  const { target } = findTarget({ targets: deps.targets, bodyLimit: 0 }, { request, destination });
  if (destination === undefined) throw new GatewayError('ROUTE_NOT_FOUND');
  const { service } = target;
  const identity = holder === undefined ? [] : await identityOf(deps, holder, destination);
  const forwarded = { ...requestOrigin(request, deps.trustedProxies), requestId: names.reqId, service, identity };
  const headers = requestHeaders(request.rawHeaders, forwarded, asked.trace);
  const { protocols } = offeredBy(request);
  return openServiceSocket(deps, { target, path: `${destination.path}${query}`, protocols, headers });
}

function identityOf({ identity }: GrantsDeps, { caller }: Holder, { rule, service }: Destination) {
  return rule?.actsOn === true ? identity.lastingHeadersFor(caller, service) : identity.headersFor(caller, service);
}
