import { describe, expect, it } from 'vitest';
import { parseWatchEvent } from './watch.ts';

const service = {
  service_name: 'shop',
  service_url: 'http://shop:80',
  service_id: '6d1c',
  registered_at: '2026-11-20T10:00:00+00:00',
  last_heartbeat: '2026-11-20T10:00:30+00:00',
  capabilities: ['rest'],
};

describe('parseWatchEvent', () => {
  it.each(['added', 'modified', 'expired', 'removed'])('reads %s', (type) => {
    expect(parseWatchEvent({ event: type, id: '42', data: JSON.stringify(service) })).toEqual({
      type,
      service,
      cursor: '42',
    });
  });

  it.each(['synced', 'reset'])('reads %s', (type) => {
    expect(parseWatchEvent({ event: type, data: '{}' })).toEqual({ type, cursor: undefined });
  });

  it('leaves out capabilities it does not know', () => {
    const data = JSON.stringify({ ...service, capabilities: ['rest', 'telepathy', 7] });
    expect(parseWatchEvent({ event: 'added', data })).toMatchObject({ service: { capabilities: ['rest'] } });
  });

  it.each([
    { what: 'an unknown type', event: 'renamed', data: JSON.stringify(service) },
    { what: 'no type', event: undefined, data: JSON.stringify(service) },
    { what: 'data that is not JSON', event: 'added', data: '{' },
    { what: 'data that is no object', event: 'added', data: '[]' },
    { what: 'a record without a name', event: 'added', data: '{"service_url":"http://x"}' },
    { what: 'a record without a URL', event: 'added', data: '{"service_name":"shop"}' },
    { what: 'a name that is no text', event: 'added', data: '{"service_name":7,"service_url":"http://x"}' },
  ])('skips $what', ({ event, data }) => {
    expect(parseWatchEvent({ event, data })).toBeUndefined();
  });
});
