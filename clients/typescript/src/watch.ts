import type { EventSourceMessage } from 'eventsource-parser';
import { readEvents } from './event-stream.ts';
import { parseJobRecord } from './job-record.ts';
import type { JobRecord } from './job-types.ts';
import type { ListedEvent } from './listed-cache.ts';
import { parseObject } from './registry-error.ts';
import { capabilities, type HealthCheckRecord, type InstanceRecord, type ServiceRecord } from './registry-types.ts';
import type { Transport } from './transport.ts';

/** What the registry can be watched for. */
export interface Watched<Item extends object, Gone extends string> {
  readonly path: string;
  /** The events that an item ends with. */
  readonly gone: readonly Gone[];
  /** @returns undefined for what is not such an item. */
  readonly parse: (data: string) => Item | undefined;
}

export const watchedServices: Watched<ServiceRecord, 'expired' | 'removed'> = {
  path: '/services/watch',
  gone: ['expired', 'removed'],
  parse: parseServiceRecord,
};

export const watchedInstances: Watched<InstanceRecord, 'expired' | 'removed'> = {
  path: '/services/watch?instances=true',
  gone: ['expired', 'removed'],
  parse: parseInstanceRecord,
};

export const watchedJobs: Watched<JobRecord, 'removed'> = {
  path: '/jobs/watch',
  gone: ['removed'],
  parse: parseJobRecord,
};

export interface WatchOptions {
  /** Resume after this event; absent: begin with everything there is. */
  readonly cursor?: string | undefined;
  /**
   * Give the connection up when nothing at all, not even a comment, arrived for this long. Default
   * 40,000.
   */
  readonly silenceMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads one connection of a watch until it ends. An ended connection says nothing about the items:
 * connect again with the last cursor.
 *
 * @throws RegistryError where it cannot be opened or breaks; the signal's reason where that
 * aborted.
 */
export async function* watchList<Item extends object, Gone extends string>(
  transport: Transport,
  watched: Watched<Item, Gone>,
  options: WatchOptions,
): AsyncGenerator<ListedEvent<Item, Gone>, void> {
  for await (const message of readEvents(transport, { path: watched.path, ...options })) {
    const event = message === 'opened' ? { type: message, cursor: undefined } : parseEvent(message, watched);
    if (event !== undefined) yield event;
  }
}

/**
 * @returns undefined for messages that this version does not know or that are not well-formed: they
 * are skipped.
 */
export function parseEvent<Item extends object, Gone extends string>(
  { event, id, data }: EventSourceMessage,
  { gone, parse }: Pick<Watched<Item, Gone>, 'gone' | 'parse'>,
): ListedEvent<Item, Gone> | undefined {
  if (event === 'synced' || event === 'reset') return { type: event, cursor: id };
  const type = (['added', 'modified', ...gone] as const).find((known) => known === event);
  const item = parse(data);
  return type && item && { type, item, cursor: id };
}

/** Whether two records say the same; heartbeats do not count. */
export function sameFacts(a: ServiceRecord, b: ServiceRecord): boolean {
  return (
    a.service_id === b.service_id &&
    a.service_url === b.service_url &&
    a.registered_at === b.registered_at &&
    a.capabilities.length === b.capabilities.length &&
    a.capabilities.every((capability) => b.capabilities.includes(capability))
  );
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

function parseInstanceRecord(data: string): InstanceRecord | undefined {
  const record = parseServiceRecord(data);
  const body = parseObject(data);
  if (record === undefined || body === undefined) return undefined;
  const texts = (['instance_id', 'health', 'version', 'zone', 'graphql_path'] as const).filter(
    (field) => typeof body[field] === 'string',
  );
  const { metadata, weight, check } = body;
  return {
    ...record,
    healthy: body['healthy'] !== false,
    ...Object.fromEntries(texts.map((field) => [field, body[field]])),
    ...(typeof weight === 'number' ? { weight } : {}),
    ...(isTexts(metadata) ? { metadata } : {}),
    ...(isCheck(check) ? { check } : {}),
  };
}

function isCheck(check: unknown): check is HealthCheckRecord {
  return typeof check === 'object' && check !== null && 'type' in check && typeof check.type === 'string';
}

function isTexts(value: unknown): value is Readonly<Record<string, string>> {
  return typeof value === 'object' && value !== null && Object.values(value).every((each) => typeof each === 'string');
}

/** As {@link sameFacts}, of instances. */
export function sameInstance(a: InstanceRecord, b: InstanceRecord): boolean {
  return sameFacts(a, b) && saidBy(a) === saidBy(b);
}

function saidBy({
  healthy,
  health,
  version,
  zone,
  weight,
  graphql_path,
  check,
  metadata = {},
}: InstanceRecord): string {
  const entries = Object.entries(metadata).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return JSON.stringify([healthy, health, version, zone, weight, graphql_path, check, entries]);
}
