import { createParser, type EventSourceMessage } from 'eventsource-parser';
import type { Dispatcher } from 'undici';
import { isObject, type SubgraphCall } from '../execution/types.ts';
import { unavailable } from './call-errors.ts';
import { NotSpokenError, type Source, type SourceOptions } from './source.ts';

const OPENING_MS = 10_000;

/**
 * Opens a subscription of a subgraph by server-sent events (graphql-sse, a connection for each).
 *
 * @throws NotSpokenError where the service does not answer so, and what connecting throws.
 */
export async function openByEvents(
  dispatcher: Dispatcher,
  { query, variables, operationName }: SubgraphCall,
  { url, headers, limitBytes, signal }: Omit<SourceOptions, 'lookup'>,
): Promise<Source> {
  const {
    statusCode,
    headers: answered,
    body,
  } = await dispatcher.request({
    origin: url.origin,
    path: `${url.pathname}${url.search}`,
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', accept: 'text/event-stream' },
    body: JSON.stringify({ query, variables, operationName }),
    signal,
    headersTimeout: OPENING_MS,
    // Not every service says regularly that it is there: whether it is, TCP finds out.
    bodyTimeout: 0,
  });
  if (statusCode === 200 && String(answered['content-type']).startsWith('text/event-stream'))
    return answersIn(body, limitBytes);
  body.on('error', () => undefined).destroy();
  throw new NotSpokenError('The service has no server-sent events for GraphQL');
}

async function* answersIn(body: AsyncIterable<Uint8Array>, limitBytes: number): Source {
  const events: EventSourceMessage[] = [];
  const parser = createParser({ maxBufferSize: limitBytes, onEvent: (event) => void events.push(event) });
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    for (const { event, data } of events.splice(0)) {
      if (event === 'complete') return;
      if (event === 'next') yield answerIn(data);
    }
  }
  throw unavailable('The service ended the subscription');
}

function answerIn(data: string) {
  try {
    const answer: unknown = JSON.parse(data);
    if (isObject(answer)) return answer;
  } catch {
    // Nor is what is no JSON.
  }
  throw unavailable('The service does not speak as GraphQL');
}
