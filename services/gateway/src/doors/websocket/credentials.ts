import type { IncomingMessage } from 'node:http';
import { bearerToken, unauthenticated } from '../../admission/bearer.ts';
import { GatewayError } from '../../errors.ts';
import { SUBPROTOCOL } from './protocol.ts';

const TOKEN_PREFIX = 'bearer.';

/** What an upgrade request shows and offers. */
interface Offered {
  /** From `Authorization`, or from the subprotocol `bearer.<token>`, for browsers cannot set header fields. */
  readonly token: string | undefined;
  /** Subprotocols, without those that hold a token. */
  readonly protocols: readonly string[];
}

/**
 * Never reads tokens from the URL, which ends in logs.
 *
 * @throws GatewayError UNAUTHENTICATED for an empty one; INVALID_REQUEST where several are sent.
 */
export function offeredBy({ headers }: Pick<IncomingMessage, 'headers'>): Offered {
  const shown = bearerToken(headers.authorization);
  const all = headers['sec-websocket-protocol']?.split(',').map((protocol) => protocol.trim()) ?? [];
  const tokens = all.filter((each) => each.startsWith(TOKEN_PREFIX)).map((each) => each.slice(TOKEN_PREFIX.length));
  const [token, ...others] = [...(shown === undefined ? [] : [shown]), ...tokens];
  if (token === '') throw unauthenticated();
  if (others.some((other) => other !== token)) {
    throw new GatewayError('INVALID_REQUEST', { message: 'Several tokens were sent' });
  }
  return { token, protocols: all.filter((each) => !each.startsWith(TOKEN_PREFIX)) };
}

/**
 * The access token of an upgrade request to `/api/ws`.
 *
 * @throws GatewayError UNAUTHENTICATED without one; INVALID_REQUEST where subprotocols are offered
 * and ours is not among them, or several tokens are sent.
 */
export function tokenOf(request: Pick<IncomingMessage, 'headers'>): string {
  const { token, protocols } = offeredBy(request);
  const offersAny = request.headers['sec-websocket-protocol'] !== undefined;
  if (offersAny && !protocols.includes(SUBPROTOCOL)) {
    throw new GatewayError('INVALID_REQUEST', {
      message: `Of subprotocols, ${SUBPROTOCOL} must be among those offered`,
    });
  }
  if (token === undefined) throw unauthenticated();
  return token;
}
