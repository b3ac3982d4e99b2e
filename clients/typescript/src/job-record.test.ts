import { describe, expect, it } from 'vitest';
import { createJobChanges, isFinished, parseJobRecord } from './job-record.ts';
import { type JobRecord, jobPhases } from './job-types.ts';

const job: JobRecord = {
  job_id: 'deploy-shop-1.4.0-1795257600',
  service_name: 'shop',
  operation: 'deploy',
  version: '1.4.0',
  old_version: '1.3.0',
  strategy: 'blue-green',
  phase: 'Verifying',
  stage: 'Baking',
  step: 0,
  weight: 100,
  actual_weight: 100,
  reason: 'Baking',
  message: '60 s to go',
  artifact: { url: 'registry.example/shop:1.4.0', type: 'image', checksum: null },
  requested_by: 'webhook',
  created_at: '2026-11-20T10:00:00.000+00:00',
  started_at: '2026-11-20T10:00:01.000+00:00',
  finished_at: null,
  analysis: [{ name: 'errors', measurements: 3, failures: 1, message: '0.2 is within the threshold' }],
};

describe('parseJobRecord', () => {
  it('reads a record whole', () => {
    expect(parseJobRecord(JSON.stringify(job))).toEqual(job);
  });

  it.each([
    ['what is not JSON', '{'],
    ['what is no object', '[]'],
    ['a record without an id', JSON.stringify({ ...job, job_id: undefined })],
    ['a phase that is not known', JSON.stringify({ ...job, phase: 'Sleeping' })],
  ])('refuses %s', (_, text) => {
    expect(parseJobRecord(text)).toBeUndefined();
  });
});

it('knows the phases in which a job has ended', () => {
  expect(jobPhases.filter((phase) => isFinished({ phase }))).toEqual(['Succeeded', 'RolledBack', 'Failed']);
});

const at = (message: string): JobRecord => ({ ...job, message });

describe('job changes', () => {
  it('are records that say something else than the one before', () => {
    const changes = createJobChanges();
    expect(changes.take(at('a'), '10')).toEqual(at('a'));
    expect(changes.take(at('a'), '11')).toBeUndefined();
    expect(changes.take(at('b'))).toEqual(at('b'));
    expect(changes.take(at('a'), '12')).toEqual(at('a'));
    expect(changes.cursor()).toBe('12');
  });

  it('are not events from before the cursor', () => {
    const changes = createJobChanges();
    changes.take(at('new'), '1000');
    expect(changes.take(at('old'), '999')).toBeUndefined();
    expect(changes.cursor()).toBe('1000');
    expect(changes.take(at('newer'), '1001')).toEqual(at('newer'));
  });

  it('have no cursor before the first event', () => {
    const changes = createJobChanges();
    changes.take(at('asked for'));
    expect(changes.cursor()).toBeUndefined();
  });

  it('are over with the last phase', () => {
    const changes = createJobChanges();
    expect(changes.areOver()).toBe(false);
    changes.take(job);
    expect(changes.areOver()).toBe(false);
    changes.take({ ...job, phase: 'Failed' });
    expect(changes.areOver()).toBe(true);
  });
});
