import type { JobPhase, JobRecord } from '@rollcall/client/job-types.ts';
import { expect, test } from 'vitest';
import { createJobsTopic, jobEventType, jobsSource } from './jobs.ts';

function job(phase: JobPhase, more: Partial<JobRecord> = {}): JobRecord {
  return {
    job_id: 'deploy-shop-1.4.0-1',
    service_name: 'shop',
    operation: 'deploy',
    version: '1.4.0',
    old_version: null,
    strategy: 'canary',
    phase,
    stage: null,
    step: null,
    weight: null,
    actual_weight: null,
    reason: null,
    message: '',
    artifact: { url: 'shop:1.4.0', type: 'image', checksum: null },
    requested_by: '',
    created_at: '2026-11-20T10:00:00.000+00:00',
    started_at: null,
    finished_at: null,
    analysis: [],
    ...more,
  };
}

test.each([
  ['started', job('Pending'), job('Progressing', { step: 0 })],
  ['step', job('Progressing', { step: 0 }), job('Progressing', { step: 1 })],
  ['step', job('Progressing', { step: 1 }), job('Paused', { step: 1 })],
  ['step', job('Paused'), job('RollingBack')],
  ['modified', job('Paused'), job('Paused', { message: 'waits' })],
  ['succeeded', job('Promoting'), job('Succeeded')],
  ['failed', job('Pending'), job('Failed')],
  ['rolled_back', job('RollingBack'), job('RolledBack')],
  // Nothing was heard of it in between.
  ['succeeded', job('Pending'), job('Succeeded')],
  ['modified', job('Succeeded'), job('Succeeded', { message: 'recorded' })],
])('%s', (type, previous, item) => {
  expect(jobEventType({ type: 'modified', item, previous })).toBe(type);
});

test('a job that is new or gone is just that, whatever its phase', () => {
  expect(jobEventType({ type: 'added', item: job('Failed') })).toBe('added');
  expect(jobEventType({ type: 'removed', item: job('Failed'), previous: job('Pending') })).toBe('removed');
});

test('serves the jobs of all and of any one service', () => {
  const source = jobsSource(createJobsTopic());
  expect(['jobs', 'jobs.shop', 'jobs.a.b'].map((channel) => source.serves(channel))).toEqual([true, true, true]);
  const others = ['jobs.', 'jobs.*', 'jobs.a b', 'job', 'jobsx', 'registrations'];
  expect(others.filter((channel) => source.serves(channel))).toEqual([]);
});
