import type { IncomingMessage } from 'node:http';
import { bearerToken, unauthenticated } from '../../admission/bearer.ts';
import { GatewayError } from '../../errors.ts';
import { SUBPROTOCOL } from './protocol.ts';

const TOKEN_PREFIX = 'bearer.';

/**
 * The access token of an upgrade request: from `Authorization`, or from the subprotocol
 * `bearer.<token>`, for browsers cannot set header fields. Never from the URL, which ends in logs.
 *
 * @throws GatewayError UNAUTHENTICATED without one; INVALID_REQUEST where subprotocols are offered
 * and ours is not among them, or several tokens are sent.
 */
export function tokenOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const { 'sec-websocket-protocol': offered } = headers;
  const shown = bearerToken(headers.authorization);
  const protocols = offered?.split(',').map((protocol) => protocol.trim()) ?? [];
  const tokens = protocols
    .filter((protocol) => protocol.startsWith(TOKEN_PREFIX))
    .map((protocol) => protocol.slice(TOKEN_PREFIX.length));
  if (protocols.length > 0 && !protocols.includes(SUBPROTOCOL)) {
    throw new GatewayError('INVALID_REQUEST', {
      message: `Of subprotocols, ${SUBPROTOCOL} must be among those offered`,
    });
  }
  const [token, ...others] = [...(shown === undefined ? [] : [shown]), ...tokens];
  if (token === undefined || token === '') throw unauthenticated();
  if (others.some((other) => other !== token)) {
    throw new GatewayError('INVALID_REQUEST', { message: 'Several tokens were sent' });
  }
  return token;
}
