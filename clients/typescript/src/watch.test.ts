import { describe, expect, it } from 'vitest';
import { parseEvent, watchedJobs, watchedServices } from './watch.ts';

const service = {
  service_name: 'shop',
  service_url: 'http://shop:80',
  service_id: '6d1c',
  registered_at: '2026-11-20T10:00:00+00:00',
  last_heartbeat: '2026-11-20T10:00:30+00:00',
  capabilities: ['rest'],
};
const job = { job_id: 'deploy-shop-1.4.0-1', service_name: 'shop', version: '1.4.0', phase: 'Paused' };

describe('events of services', () => {
  it.each(['added', 'modified', 'expired', 'removed'])('%s', (type) => {
    const message = { event: type, id: '42', data: JSON.stringify(service) };
    expect(parseEvent(message, watchedServices)).toEqual({ type, item: service, cursor: '42' });
  });

  it.each(['synced', 'reset'])('%s', (type) => {
    expect(parseEvent({ event: type, data: '{}' }, watchedServices)).toEqual({ type, cursor: undefined });
  });

  it('leaves out capabilities it does not know', () => {
    const data = JSON.stringify({ ...service, capabilities: ['rest', 'telepathy', 7] });
    expect(parseEvent({ event: 'added', data }, watchedServices)).toMatchObject({ item: { capabilities: ['rest'] } });
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
    expect(parseEvent({ event, data }, watchedServices)).toBeUndefined();
  });
});

describe('events of jobs', () => {
  it.each(['added', 'modified', 'removed'])('%s', (type) => {
    const message = { event: type, id: '42', data: JSON.stringify(job) };
    expect(parseEvent(message, watchedJobs)).toMatchObject({ type, item: job, cursor: '42' });
  });

  it.each([
    { what: 'an unknown type', event: 'expired', data: JSON.stringify(job) },
    { what: 'a record without an id', event: 'added', data: '{"phase":"Paused"}' },
    { what: 'a phase that is not known', event: 'added', data: JSON.stringify({ ...job, phase: 'Levitating' }) },
  ])('skips $what', ({ event, data }) => {
    expect(parseEvent({ event, data }, watchedJobs)).toBeUndefined();
  });
});
