import { describe, expect, it } from 'vitest';
import { parseJobWatchEvent } from './job-watch.ts';

const job = { job_id: 'deploy-shop-1.4.0-1', service_name: 'shop', version: '1.4.0', phase: 'Paused' };

describe('parseJobWatchEvent', () => {
  it.each(['added', 'modified', 'removed'])('reads %s', (type) => {
    expect(parseJobWatchEvent({ event: type, id: '42', data: JSON.stringify(job) })).toMatchObject({
      type,
      job,
      cursor: '42',
    });
  });

  it.each(['synced', 'reset'])('reads %s', (type) => {
    expect(parseJobWatchEvent({ event: type, data: '{}' })).toEqual({ type, cursor: undefined });
  });

  it.each([
    { what: 'an unknown type', event: 'paused', data: JSON.stringify(job) },
    { what: 'no type', event: undefined, data: JSON.stringify(job) },
    { what: 'data that is not JSON', event: 'added', data: '{' },
    { what: 'a record without an id', event: 'added', data: '{"phase":"Paused"}' },
    { what: 'a phase that is not known', event: 'added', data: JSON.stringify({ ...job, phase: 'Levitating' }) },
  ])('skips $what', ({ event, data }) => {
    expect(parseJobWatchEvent({ event, data })).toBeUndefined();
  });
});
