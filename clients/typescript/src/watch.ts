import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { isUnreachable, parseObject, unreachable } from './registry-error.ts';
import { capabilities, type ServiceRecord } from './registry-types.ts';
import type { Transport } from './transport.ts';

/**
 * What `GET /services/watch` tells. `cursor` is the event's id: a later watch that names it resumes after the event.
 *
 * - `opened`: the registry accepted the watch; no message of its, always the first.
 * - `added`, `modified`, `expired`, `removed`: what happened to one registration, with its facts at that moment.
 * - `synced`: everything that is registered has now been sent.
 * - `reset`: the cursor was too old to resume from; everything follows, up to `synced`.
 */
export type WatchEvent =
  | ServiceEvent
  | { readonly type: 'opened' | 'synced' | 'reset'; readonly cursor: string | undefined };

const serviceEventTypes = ['added', 'modified', 'expired', 'removed'] as const;

export interface ServiceEvent {
  readonly type: (typeof serviceEventTypes)[number];
  readonly service: ServiceRecord;
  readonly cursor: string | undefined;
}

export interface WatchOptions {
  /** Resume after this event; absent: begin with everything that is registered. */
  readonly cursor?: string | undefined;
  /** Give the connection up when nothing at all, not even a comment, arrived for this long. Default 40,000. */
  readonly silenceMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The registry sends a comment every 15 s: two and a half of those missed mean that nobody is there any more. */
const DEFAULT_SILENCE_MS = 40_000;

/** Far above any event; a stream that exceeds it is not the registry's. */
const LARGEST_EVENT_CHARS = 1_048_576;

/**
 * Reads one connection of the watch until it ends. An ended connection says nothing about the registrations: connect again
 * with the last cursor.
 *
 * @throws RegistryError where it cannot be opened or breaks; the signal's reason where that aborted.
 */
export async function* watchServices(transport: Transport, options: WatchOptions): AsyncGenerator<WatchEvent, void> {
  const { cursor, silenceMs = DEFAULT_SILENCE_MS, signal } = options;
  const resume = cursor === undefined ? {} : { 'last-event-id': cursor };
  const stream = await transport.open({
    method: 'GET',
    path: '/services/watch',
    headers: { accept: 'text/event-stream', ...resume },
    repeatable: true,
    signal,
  });
  const events: WatchEvent[] = [];
  const parser = createParser({
    maxBufferSize: LARGEST_EVENT_CHARS,
    onEvent(message) {
      const event = parseWatchEvent(message);
      if (event !== undefined) events.push(event);
    },
  });
  const decoder = new TextDecoder();
  const reader = stream.body.getReader();
  const readInTime = async () => {
    const silence = setTimeout(() => stream.close(new Error(`silent for ${silenceMs} ms`)), silenceMs);
    try {
      return await reader.read();
    } finally {
      clearTimeout(silence);
    }
  };
  try {
    yield { type: 'opened', cursor: undefined };
    for (let chunk = await readInTime(); !chunk.done; chunk = await readInTime()) {
      parser.feed(decoder.decode(chunk.value, { stream: true }));
      yield* events.splice(0);
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

/** @returns undefined for messages that this version does not know or that are not well-formed: they are skipped. */
export function parseWatchEvent({ event, id, data }: EventSourceMessage): WatchEvent | undefined {
  if (event === 'synced' || event === 'reset') return { type: event, cursor: id };
  const type = serviceEventTypes.find((known) => known === event);
  const service = parseServiceRecord(data);
  return type && service && { type, service, cursor: id };
}

function parseServiceRecord(data: string): ServiceRecord | undefined {
  const body = parseObject(data);
  if (body === undefined) return undefined;
  const text = (field: string) => (typeof body[field] === 'string' ? body[field] : '');
  const given = body['capabilities'];
  const record: ServiceRecord = {
    service_name: text('service_name'),
    service_url: text('service_url'),
    service_id: text('service_id'),
    registered_at: text('registered_at'),
    last_heartbeat: text('last_heartbeat'),
    capabilities: Array.isArray(given) ? capabilities.filter((capability) => given.includes(capability)) : [],
  };
  return record.service_name === '' || record.service_url === '' ? undefined : record;
}
