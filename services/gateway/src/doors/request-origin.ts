import type { IncomingMessage } from 'node:http';
import type { RequestOrigin } from '@rollcall/platform/http/request-spans.ts';
import { clientAddress, type TrustedProxies } from '../admission/client-address.ts';

/** How a request came to the gateway. */
export interface ForwardedOrigin extends RequestOrigin {
  /** Addresses that trusted proxies in front have added; the connecting one comes last. */
  readonly forwardedFor: string;
}

/** What trusted proxies say of a request; where there are none, what the connection says. */
export function requestOrigin(
  { headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>,
  trusted: TrustedProxies,
): ForwardedOrigin {
  const remoteAddress = socket.remoteAddress ?? '';
  const address = clientAddress(remoteAddress, headers['x-forwarded-for'], trusted);
  const before = single(headers['x-forwarded-for']);
  const isTrusted = before !== undefined && address !== clientAddress(remoteAddress, undefined, trusted);
  return {
    clientAddress: address,
    forwardedFor: isTrusted ? `${before}, ${remoteAddress}` : remoteAddress,
    protocol: isTrusted && headers['x-forwarded-proto'] === 'https' ? 'https' : 'http',
    host: (isTrusted ? single(headers['x-forwarded-host']) : undefined) ?? headers.host ?? '',
  };
}

function single(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
