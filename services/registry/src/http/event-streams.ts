import { createEventStreams, type EventStreams } from '@rollcall/platform/http/event-streams.ts';
import type { FastifyRequest } from 'fastify';
import { RegistryError } from '../common/errors.ts';
import { createStreamLimits, type StreamCaller } from '../feeds/stream-limits.ts';
import { headerCredentials } from './authentication.ts';
import { streamCaller } from './stream-caller.ts';

/**
 * Streams of server-sent events, each counted for its caller.
 *
 * `open` throws RegistryError TOO_MANY_STREAMS, STREAM_SHARE_USED and STOPPING.
 */
export function createLimitedStreams(): EventStreams {
  const limits = createStreamLimits();
  return createEventStreams({
    admit: (request) => limits.acquire(callerOf(request)),
    stopping: () => new RegistryError('STOPPING'),
  });
}

function callerOf({ headers, subject, ip }: FastifyRequest): StreamCaller {
  const isProxied = headers['x-forwarded-for'] !== undefined;
  return streamCaller({ credentials: headerCredentials(headers), subject, address: ip, isProxied });
}
