import { describe, expect, it } from 'vitest';
import { createListedCache, type ListedEvent } from './listed-cache.ts';
import type { ServiceRecord } from './registry-types.ts';
import { sameFacts } from './watch.ts';

type WatchEvent = ListedEvent<ServiceRecord, 'expired' | 'removed'>;

const createServiceCache = () =>
  createListedCache<ServiceRecord, 'expired' | 'removed'>({
    keyOf: ({ service_name }) => service_name,
    isSame: sameFacts,
  });
type ServiceCache = ReturnType<typeof createServiceCache>;

function record(name: string, facts: Partial<ServiceRecord> = {}): ServiceRecord {
  return {
    service_name: name,
    service_url: `http://${name}:80`,
    service_id: `id-of-${name}`,
    registered_at: '2026-11-20T10:00:00+00:00',
    last_heartbeat: '2026-11-20T10:00:00+00:00',
    capabilities: ['rest'],
    ...facts,
  };
}

const event = (
  type: 'added' | 'modified' | 'expired' | 'removed',
  service: ServiceRecord,
  cursor?: string,
): WatchEvent => ({
  type,
  item: service,
  cursor,
});
const synced = (cursor?: string): WatchEvent => ({ type: 'synced', cursor });
const reset: WatchEvent = { type: 'reset', cursor: undefined };

function feed(cache: ServiceCache, events: readonly WatchEvent[]): string[] {
  return events.flatMap((each) => cache.apply(each)).map(({ type, item }) => `${type} ${item.service_name}`);
}

const names = (cache: ServiceCache) => Array.from(cache.items(), (service) => service.service_name).sort();

/** A cache that knows shop and cart, at cursor 2. */
function knowing(): ServiceCache {
  const cache = createServiceCache();
  cache.beginConnection();
  feed(cache, [event('added', record('shop'), '1'), event('added', record('cart'), '2'), synced('2')]);
  return cache;
}

describe('a cache of services', () => {
  it('holds what a first full list names', () => {
    const cache = createServiceCache();
    expect(cache.beginConnection()).toBeUndefined();
    const changes = feed(cache, [event('added', record('shop')), event('added', record('cart')), synced('7')]);
    expect(changes).toEqual(['added shop', 'added cart']);
    expect(names(cache)).toEqual(['cart', 'shop']);
    expect(cache.beginConnection()).toBe('7');
  });

  it.each([
    {
      what: 'a new fact',
      events: [event('modified', record('shop', { service_url: 'http://new' }))],
      changes: ['modified shop'],
    },
    {
      what: 'a new capability',
      events: [event('modified', record('shop', { capabilities: ['grpc'] }))],
      changes: ['modified shop'],
    },
    { what: 'the same facts again', events: [event('added', record('shop'))], changes: [] },
    { what: 'a mere heartbeat', events: [event('modified', record('shop', { last_heartbeat: 'later' }))], changes: [] },
    {
      what: 'a registration made anew',
      events: [event('added', record('shop', { service_id: 'other' }))],
      changes: ['modified shop'],
    },
    { what: 'expiry', events: [event('expired', record('shop'))], changes: ['expired shop'] },
    { what: 'removal', events: [event('removed', record('shop'))], changes: ['removed shop'] },
    { what: 'removal of an unknown one', events: [event('removed', record('ghost'))], changes: [] },
    {
      what: 'removal and return',
      events: [event('removed', record('shop')), event('added', record('shop'))],
      changes: ['removed shop', 'added shop'],
    },
  ])('after the list, $what gives $changes', ({ events, changes }) => {
    const cache = knowing();
    expect(feed(cache, events)).toEqual(changes);
  });

  it('reports what was known before', () => {
    const changed = record('shop', { service_url: 'http://new' });
    expect(knowing().apply(event('modified', changed))).toEqual([
      { type: 'modified', item: changed, previous: record('shop') },
    ]);
  });

  it('keeps serving what it knew until the list after a reset is complete, then drops what that did not name', () => {
    const cache = knowing();
    expect(feed(cache, [reset, event('added', record('shop'), '9')])).toEqual([]);
    expect(names(cache)).toEqual(['cart', 'shop']);
    expect(feed(cache, [synced('9')])).toEqual(['removed cart']);
    expect(names(cache)).toEqual(['shop']);
  });

  it('drops nothing when a list is cut short, and says to the next registry what it knew before, for that may be ahead', () => {
    const cache = knowing();
    feed(cache, [reset, event('added', record('shop'), '9')]);
    expect(cache.beginConnection()).toBe('2');
    expect(names(cache)).toEqual(['cart', 'shop']);
    expect(feed(cache, [reset, event('added', record('cart'), '8'), synced('9')])).toEqual(['removed shop']);
    expect(cache.beginConnection()).toBe('9');
  });

  it('may be resumed after a list that was cut short, which undoes nothing', () => {
    const cache = knowing();
    feed(cache, [reset, event('added', record('pay'))]);
    expect(cache.beginConnection()).toBe('2');
    expect(feed(cache, [event('removed', record('cart'), '3'), event('added', record('pay'), '4')])).toEqual([
      'removed cart',
    ]);
    expect(names(cache)).toEqual(['pay', 'shop']);
    expect(cache.beginConnection()).toBe('4');
  });

  it('does not resume from the middle of a first list', () => {
    const cache = createServiceCache();
    cache.beginConnection();
    feed(cache, [event('added', record('shop'), '5')]);
    expect(cache.beginConnection()).toBeUndefined();
  });

  it('resumes after the last event, and treats a synced after a resumption as no list', () => {
    const cache = knowing();
    feed(cache, [event('added', record('pay'), '3'), event('removed', record('shop'), '4')]);
    expect(cache.beginConnection()).toBe('4');
    expect(feed(cache, [synced()])).toEqual([]);
    expect(names(cache)).toEqual(['cart', 'pay']);
  });

  it('treats a removal during a list as such', () => {
    const cache = createServiceCache();
    cache.beginConnection();
    feed(cache, [event('added', record('shop')), event('removed', record('shop')), synced()]);
    expect(cache.find('shop')).toBeUndefined();
  });
});
