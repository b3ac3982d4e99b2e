import { describe, expect, test } from 'vitest';
import { dueEvents } from './job-events.ts';
import { someJob } from './job-fixture.ts';
import type { Job } from './jobs.ts';

/** `type key` of each. */
function due(fields: Partial<Job>): string[] {
  return dueEvents(someJob({ finishedAt: undefined, ...fields })).map(({ type, key }) => `${type} ${key}`);
}

test.each([undefined, 'Pending'] as const)('%s: there is nothing to tell of a job that waits', (phase) => {
  expect(due({ phase, startedAt: undefined, step: 0 })).toEqual([]);
});

test.each(['Progressing', 'Verifying'] as const)('%s: that it has started, and its step', (phase) => {
  expect(due({ phase })).toEqual(['job.started started']);
  expect(due({ phase, step: 2 })).toEqual(['job.started started', 'job.step step:2']);
});

test.each(['Paused', 'Promoting', 'RollingBack'] as const)('%s is told, once for each step', (phase) => {
  expect(due({ phase })).toEqual(['job.started started', `job.step ${phase}:`]);
  expect(due({ phase, step: 1 })).toEqual(['job.started started', `job.step ${phase}:1`]);
});

describe('the end', () => {
  test.each([
    ['Succeeded', 'job.succeeded'],
    ['Failed', 'job.failed'],
    ['RolledBack', 'job.rolled_back'],
  ] as const)('%s is told as %s, with the start where nobody was there to tell it', (phase, type) => {
    expect(due({ phase, step: 3, finishedAt: new Date() })).toEqual(['job.started started', `${type} finished`]);
  });

  test('a job that was cancelled while it waited has never started', () => {
    expect(due({ phase: 'RolledBack', startedAt: undefined })).toEqual(['job.rolled_back finished']);
  });
});
