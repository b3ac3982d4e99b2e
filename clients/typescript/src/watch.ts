import type { EventSourceMessage } from 'eventsource-parser';
import { readEvents } from './event-stream.ts';
import { parseObject } from './registry-error.ts';
import { capabilities, type ServiceRecord } from './registry-types.ts';
import type { Transport } from './transport.ts';

/**
 * Events of `GET /services/watch`. `cursor` is the event's id: a later watch that names it resumes
 * after the event.
 *
 * - `opened`: the registry accepted the watch; no message of its, always the first.
 * - `added`, `modified`, `expired`, `removed`: what happened to one registration, with its facts at
 *   that moment.
 * - `synced`: everything that is registered has now been sent.
 * - `reset`: the cursor was too old to resume from; everything follows, up to `synced`.
 */
export type WatchEvent =
  | ServiceEvent
  | { readonly type: 'opened' | 'synced' | 'reset'; readonly cursor: string | undefined };

const serviceEventTypes = ['added', 'modified', 'expired', 'removed'] as const;

interface ServiceEvent {
  readonly type: (typeof serviceEventTypes)[number];
  readonly service: ServiceRecord;
  readonly cursor: string | undefined;
}

export interface WatchOptions {
  /** Resume after this event; absent: begin with everything that is registered. */
  readonly cursor?: string | undefined;
  /**
   * Give the connection up when nothing at all, not even a comment, arrived for this long. Default
   * 40,000.
   */
  readonly silenceMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads one connection of the watch until it ends. An ended connection says nothing about the
 * registrations: connect again with the last cursor.
 *
 * @throws RegistryError where it cannot be opened or breaks; the signal's reason where that
 * aborted.
 */
export async function* watchServices(transport: Transport, options: WatchOptions): AsyncGenerator<WatchEvent, void> {
  for await (const message of readEvents(transport, { path: '/services/watch', ...options })) {
    const event = message === 'opened' ? { type: message, cursor: undefined } : parseWatchEvent(message);
    if (event !== undefined) yield event;
  }
}

/**
 * @returns undefined for messages that this version does not know or that are not well-formed: they
 * are skipped.
 */
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
