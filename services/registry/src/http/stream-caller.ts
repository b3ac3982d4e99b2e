import { unverifiedSubject } from '@rollcall/platform/http/identity.ts';
import type { StreamCaller } from '../feeds/stream-limits.ts';
import type { Credentials } from './authentication.ts';

/** What is known of who asks for a stream. */
export interface StreamRequest {
  readonly credentials: Credentials;
  /** As authentication has it; undefined where that is off. */
  readonly subject: string | undefined;
  /** Of the other end of the connection. */
  readonly address: string;
  /** Whether a proxy says that it has passed the request on. */
  readonly isProxied: boolean;
}

/**
 * For whom a stream is counted: the subject. Where authentication is off it is the client that the
 * gateway names, unproven; else the address, which distinguishes the gateway's own watches from
 * what it passes on.
 */
export function streamCaller({ credentials, subject, address, isProxied }: StreamRequest): StreamCaller {
  const { token, identity } = credentials;
  // A token decides alone, also beside an identity.
  const isClient = identity !== undefined && token === undefined;
  if (subject !== undefined) return { name: subject, isForwarded: isClient };
  const client = isClient ? unverifiedSubject(identity) : undefined;
  return { name: client ?? `address ${address}`, isForwarded: isClient || isProxied };
}
