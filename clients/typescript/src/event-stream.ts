import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { isUnreachable, unreachable } from './registry-error.ts';
import type { Transport } from './transport.ts';

export interface EventStreamOptions {
  /** Below `/api/v1`, already encoded. */
  readonly path: string;
  /** Resume after the event of this id. */
  readonly cursor?: string | undefined;
  /**
   * Give the connection up when nothing at all, not even a comment, arrived for this long. Default
   * 40,000.
   */
  readonly silenceMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The registry sends a comment every 15 s: two and a half of those missed mean that nobody is there
 * any more.
 */
const DEFAULT_SILENCE_MS = 40_000;

/** Far above any event; a stream that exceeds it is not the registry's. */
const LARGEST_EVENT_CHARS = 1_048_576;

/**
 * Reads one connection to a stream of server-sent events until it ends: `opened` when a registry
 * has accepted it, then the messages.
 *
 * @throws RegistryError where it cannot be opened or breaks; the signal's reason where that
 * aborted.
 */
export async function* readEvents(
  transport: Transport,
  options: EventStreamOptions,
): AsyncGenerator<'opened' | EventSourceMessage, void> {
  const { path, cursor, silenceMs = DEFAULT_SILENCE_MS, signal } = options;
  const resume = cursor === undefined ? {} : { 'last-event-id': cursor };
  const headers = { accept: 'text/event-stream', ...resume };
  const stream = await transport.open({ method: 'GET', path, headers, repeatable: true, signal });
  const messages: EventSourceMessage[] = [];
  const parser = createParser({
    maxBufferSize: LARGEST_EVENT_CHARS,
    onEvent: (message) => void messages.push(message),
  });
  const decoder = new TextDecoder();
  const reader = stream.body.getReader();
  const read = async () => {
    const silence = setTimeout(() => stream.close(new Error(`silent for ${silenceMs} ms`)), silenceMs);
    try {
      return await reader.read();
    } finally {
      clearTimeout(silence);
    }
  };
  try {
    yield 'opened';
    for (let chunk = await read(); !chunk.done; chunk = await read()) {
      parser.feed(decoder.decode(chunk.value, { stream: true }));
      yield* messages.splice(0);
    }
    transport.distrust(stream.server);
  } catch (error) {
    if (signal?.aborted === true) throw signal.reason;
    transport.distrust(stream.server);
    throw isUnreachable(error) ? error : unreachable(stream.server, error);
  } finally {
    stream.close(new Error('no longer read'));
  }
}
