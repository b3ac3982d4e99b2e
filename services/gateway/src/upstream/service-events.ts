import { createParser, type EventSourceMessage } from 'eventsource-parser';
import type { Dispatcher } from 'undici';
import type { Caller } from '../admission/caller.ts';
import type { BackendIdentity } from '../identity/backend-identity.ts';
import type { Endpoint } from './discovery/endpoint.ts';
import type { Targets } from './discovery/targets.ts';
import type { Dispatchers } from './dispatchers.ts';

const PATH = '/api/v1/events';
const OPENING_MS = 10_000;
/** Services send a comment every 15 s. A stream that is not read on purpose does not count as silent. */
const SILENCE_MS = 40_000;
const LARGEST_EVENT_CHARS = 1024 * 1024;

interface OpenEventsOptions {
  readonly caller: Caller;
  /** Of the last event that was read; undefined: from now on. */
  readonly cursor: string | undefined;
  readonly signal: AbortSignal;
}

/**
 * Opens the stream of what happens to what belongs to a caller at a service, and reads it until it
 * ends. It is read no faster than it is asked for.
 *
 * @throws Error where it cannot be opened, or breaks.
 */
export type OpenServiceEvents = (
  service: string,
  options: OpenEventsOptions,
) => AsyncGenerator<EventSourceMessage, void>;

export interface ServiceEventsDeps {
  readonly targets: Pick<Targets, 'findRegistered'>;
  readonly dispatchers: Pick<Dispatchers, 'of'>;
  readonly identity: BackendIdentity;
}

export function openServiceEvents({ targets, dispatchers, identity }: ServiceEventsDeps): OpenServiceEvents {
  async function endpointOf(service: string): Promise<Endpoint> {
    const endpoints = targets.findRegistered(service)?.endpoints;
    await endpoints?.refresh();
    const endpoint = endpoints?.acquire();
    if (endpoint === undefined) throw new Error('the service is not there');
    return endpoint;
  }

  return async function* open(service, { caller, cursor, signal }) {
    const headers = [...(await identity.headersFor(caller, service)), 'accept', 'text/event-stream'];
    if (cursor !== undefined) headers.push('last-event-id', cursor);
    const endpoint = await endpointOf(service);
    const body = await opened(dispatchers.of(endpoint), { endpoint, headers, signal });
    yield* messagesOf(body);
  };
}

interface Opening {
  readonly endpoint: Endpoint;
  readonly headers: readonly string[];
  readonly signal: AbortSignal;
}

/**
 * The body of the answer. The endpoint is busy with it only until it begins: streams stay, and would
 * leave no room for requests. Its breaker learns whether it can be reached.
 */
async function opened(
  dispatcher: Dispatcher,
  { endpoint, headers, signal }: Opening,
): Promise<AsyncIterable<Uint8Array>> {
  const { origin, basePath, breaker } = endpoint;
  endpoint.underWay += 1;
  try {
    const { statusCode, body } = await dispatcher.request({
      origin,
      path: basePath + PATH,
      method: 'GET',
      headers: [...headers],
      signal,
      headersTimeout: OPENING_MS,
      bodyTimeout: SILENCE_MS,
    });
    breaker.succeeded();
    if (statusCode === 200) return body;
    await body.dump();
    throw new RefusedError(statusCode);
  } catch (error) {
    if (signal.aborted) breaker.abandoned();
    else if (!(error instanceof RefusedError)) breaker.failed();
    throw error;
  } finally {
    endpoint.underWay -= 1;
  }
}

class RefusedError extends Error {
  constructor(status: number) {
    super(`the service answers ${status}`);
    this.name = 'RefusedError';
  }
}

async function* messagesOf(body: AsyncIterable<Uint8Array>): AsyncGenerator<EventSourceMessage, void> {
  const messages: EventSourceMessage[] = [];
  const parser = createParser({
    maxBufferSize: LARGEST_EVENT_CHARS,
    onEvent: (message) => void messages.push(message),
  });
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    yield* messages.splice(0);
  }
}
