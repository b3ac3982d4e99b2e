import type { JobRecord } from '@rollcall/client/job-types.ts';
import { describe, expect, it } from 'vitest';
import { formatJob, formatJobs, formatOutcome, formatProgress } from './jobs.ts';

const now = new Date('2026-11-20T12:00:00Z');

const job: JobRecord = {
  job_id: 'deploy-shop-1.4.0-1795257600',
  service_name: 'shop',
  operation: 'deploy',
  version: '1.4.0',
  old_version: '1.3.0',
  strategy: 'canary',
  phase: 'Verifying',
  stage: 'StepVerifying',
  step: 1,
  weight: 25,
  actual_weight: 33,
  reason: 'ChecksRunning',
  message: '2 of 5 measurements',
  artifact: { url: 'registry.example/shop:1.4.0', type: 'image', checksum: null },
  requested_by: 'webhook',
  created_at: '2026-11-20T11:58:00.000+00:00',
  started_at: '2026-11-20T11:58:18.000+00:00',
  finished_at: null,
  analysis: [{ name: 'errors', measurements: 2, failures: 1, message: '0.2 is within the threshold' }],
};

const waiting: JobRecord = {
  ...job,
  job_id: 'rollback-cart-1-1',
  service_name: 'cart',
  operation: 'rollback',
  version: '1',
  old_version: null,
  strategy: null,
  phase: 'Pending',
  stage: null,
  step: null,
  weight: null,
  actual_weight: null,
  reason: null,
  message: '',
  started_at: null,
  analysis: [],
};

it('lists jobs', () => {
  expect(formatJobs([job, waiting], now)).toBe(
    [
      'JOB                            SERVICE   FROM    TO      STRATEGY   PHASE       WEIGHT   AGE   MESSAGE',
      'deploy-shop-1.4.0-1795257600   shop      1.3.0   1.4.0   canary     Verifying   25%      2m    2 of 5 measurements',
      'rollback-cart-1-1              cart      -       1       -          Pending     -        2m    -',
      '',
    ].join('\n'),
  );
});

it('shows a job and what its checks have measured', () => {
  expect(formatJob(job, now)).toBe(
    [
      'Job:            deploy-shop-1.4.0-1795257600',
      'Service:        shop',
      'Operation:      deploy',
      'Version:        1.3.0 -> 1.4.0',
      'Artifact:       image registry.example/shop:1.4.0',
      'Checksum:       -',
      'Strategy:       canary',
      'Phase:          Verifying',
      'Stage:          StepVerifying',
      'Step:           step 1',
      'Weight:         25% (33% of the traffic now)',
      'Reason:         ChecksRunning',
      'Message:        2 of 5 measurements',
      'Requested by:   webhook',
      'Created:        2026-11-20T11:58:00.000+00:00 (2m ago)',
      'Started:        2026-11-20T11:58:18.000+00:00 (102s ago)',
      'Finished:       -',
      '',
      'CHECK    MEASURED   FAILED   LAST',
      'errors   2          1        0.2 is within the threshold',
      '',
    ].join('\n'),
  );
});

it('shows a job that waits, of which little is known', () => {
  const text = formatJob(waiting, now);
  expect(text).toContain('Version:        1\n');
  expect(text).toContain('Weight:         -\n');
  expect(text).not.toContain('CHECK');
});

describe('a line of the log', () => {
  it('is about one job', () => {
    expect(formatProgress(job, '12:00:00')).toBe('12:00:00   Verifying     25%    step 1   2 of 5 measurements\n');
    expect(formatProgress(waiting, '12:00:00')).toBe('12:00:00   Pending       -      -        -\n');
  });

  it('shows no control characters', () => {
    const line = formatProgress({ ...job, message: 'a\u001b[2Jb\nc' }, '12:00:00');
    expect(line).toBe('12:00:00   Verifying     25%    step 1   a\uFFFD[2Jb\uFFFDc\n');
  });
});

describe('the outcome', () => {
  const finished_at = '2026-11-20T12:00:31.000+00:00';
  it.each([
    [{ phase: 'Succeeded', finished_at, message: 'all done' }, "version 1.4.0 of 'shop' was delivered after 2m13s"],
    [
      { phase: 'RolledBack', finished_at, reason: 'AnalysisFailed', message: 'too many errors' },
      "version 1.4.0 of 'shop' was rolled back after 2m13s (AnalysisFailed: too many errors)",
    ],
    [
      { phase: 'Failed', started_at: null, reason: 'WorkloadNotFound', message: 'no Deployment' },
      "version 1.4.0 of 'shop' failed (WorkloadNotFound: no Deployment)",
    ],
    [{ phase: 'Failed', started_at: null, reason: null, message: '' }, "version 1.4.0 of 'shop' failed"],
    [{ phase: 'Failed', reason: null, message: 'a\nb' }, "version 1.4.0 of 'shop' failed (a\uFFFDb)"],
  ] as const)('of %j', (changes, expected) => {
    expect(formatOutcome({ ...job, ...changes })).toBe(expected);
  });
});
