import { describe, expect, test } from 'vitest';
import type { Job } from '../../jobs/domain/jobs.ts';
import { someJob } from '../../jobs/testing/job-fixture.ts';
import { dueEvents } from './job-events.ts';

/** `type key` of each. */
function due(fields: Partial<Job>): string[] {
  return dueEvents(someJob({ finishedAt: undefined, ...fields })).map(({ type, key }) => `${type} ${key}`);
}

test.each([undefined, 'Pending'] as const)('%s: there is nothing to report of a job that waits', (phase) => {
  expect(due({ phase, startedAt: undefined, step: 0 })).toEqual([]);
});

test.each(['Progressing', 'Verifying'] as const)('%s: that it has started, and its step', (phase) => {
  expect(due({ phase })).toEqual(['job.started started']);
  expect(due({ phase, step: 2 })).toEqual(['job.started started', 'job.step step:2']);
});

test.each(['Paused', 'Promoting', 'RollingBack'] as const)('%s is reported, once for each step', (phase) => {
  expect(due({ phase })).toEqual(['job.started started', `job.step ${phase}:`]);
  expect(due({ phase, step: 1 })).toEqual(['job.started started', `job.step ${phase}:1`]);
});

describe('the end', () => {
  test.each([
    ['Succeeded', 'job.succeeded'],
    ['Failed', 'job.failed'],
    ['RolledBack', 'job.rolled_back'],
  ] as const)('%s is reported as %s, with the start where nobody was there to send it', (phase, type) => {
    expect(due({ phase, step: 3, finishedAt: new Date() })).toEqual(['job.started started', `${type} finished`]);
  });

  test('a job that was cancelled while it waited has never started', () => {
    expect(due({ phase: 'RolledBack', startedAt: undefined })).toEqual(['job.rolled_back finished']);
  });
});

const at = (second: number) => new Date(Date.UTC(2026, 10, 20, 11, 0, second));

describe('what the job came to while nobody looked', () => {
  const milestones = [
    { phase: 'Progressing', step: undefined, weight: undefined, at: at(0) },
    { phase: 'Progressing', step: 0, weight: 0, at: at(1) },
    { phase: 'Verifying', step: 0, weight: 10, at: at(2) },
    { phase: 'Paused', step: 0, weight: 10, at: at(3) },
    { phase: 'Progressing', step: 1, weight: 10, at: at(4) },
    { phase: 'Paused', step: 1, weight: 50, at: at(5) },
  ] as const;
  const steps = ['job.started started', 'job.step step:0', 'job.step Paused:0', 'job.step step:1', 'job.step Paused:1'];

  test('is due in its order, before what it is now and before its end', () => {
    const promoting = { phase: 'Promoting', step: 1, weight: 100, at: at(6) } as const;
    expect(due({ phase: 'Paused', step: 1, milestones })).toEqual(steps);
    expect(due({ phase: 'Succeeded', step: 1, milestones: [...milestones, promoting], finishedAt: at(7) })).toEqual([
      ...steps,
      'job.step Promoting:1',
      'job.succeeded finished',
    ]);
  });

  test('where the latest is not among it, it is due all the same', () => {
    expect(due({ phase: 'RollingBack', step: 1, milestones })).toEqual([...steps, 'job.step RollingBack:1']);
  });

  test('is told with the time, phase, step and weight that it had then, and without what is known of now only', () => {
    const job = someJob({ phase: 'Paused', step: 1, weight: 50, message: 'waits', finishedAt: undefined, milestones });
    const told = dueEvents(job).map((event) => [event.at, event.job.phase, event.job.weight, event.job.message]);
    expect(told).toEqual([
      [job.startedAt, 'Progressing', undefined, undefined],
      [at(1), 'Progressing', 0, undefined],
      [at(3), 'Paused', 10, undefined],
      [at(4), 'Progressing', 10, undefined],
      [at(5), 'Paused', 50, 'waits'],
    ]);
  });

  test('is no news of a job that waits again', () => {
    expect(due({ phase: 'Pending', milestones })).toEqual([]);
  });
});
