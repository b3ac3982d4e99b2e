import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import { expect, test } from 'vitest';
import { headOf, isFinished, isRunning, jobOrder, queueView } from './queue.ts';

interface NewJob {
  readonly second?: number;
  /** When it was first seen. */
  readonly seen?: number;
  readonly phase?: NonNullable<DeliveryJob['status']>['phase'];
  readonly stage?: string;
  readonly operation?: 'Deploy' | 'Rollback';
  readonly abort?: boolean;
  readonly immediate?: boolean;
  readonly deleted?: boolean;
}

function job(
  name: string,
  { second = 0, seen = 0, phase, stage, operation = 'Deploy', abort = false, immediate, deleted }: NewJob = {},
): DeliveryJob {
  const at = `2026-01-01T00:00:0${second}Z`;
  return {
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'DeliveryJob',
    metadata: {
      name,
      uid: `uid-of-${name}`,
      generation: seen,
      creationTimestamp: at,
      ...(deleted === true ? { deletionTimestamp: at } : {}),
    },
    spec: {
      serviceName: 'shop',
      operation,
      version: '1',
      artifact: { type: 'image', url: 'shop:1' },
      abort,
      promote: false,
      ...(immediate === undefined ? {} : { immediate }),
    },
    ...(phase === undefined ? {} : { status: { phase, ...(stage === undefined ? {} : { stage }) } }),
  };
}

/** The generation stands for when a job was first seen. */
const order = jobOrder(({ metadata }) => metadata.generation ?? 0);

test('a job without a status, or Pending, has not begun; one at an end is finished', () => {
  const states = ([undefined, 'Pending', 'Paused', 'RollingBack', 'Succeeded', 'RolledBack', 'Failed'] as const).map(
    (phase) => {
      const made = job('a', phase === undefined ? {} : { phase });
      return [isRunning(made), isFinished(made)];
    },
  );
  const [waiting, running, finished] = [
    [false, false],
    [true, false],
    [false, true],
  ];
  expect(states).toEqual([waiting, waiting, running, running, finished, finished, finished]);
});

test.each([
  { sentence: 'the oldest goes first', jobs: [job('b', { second: 2 }), job('a', { second: 1 })], head: 'a' },
  {
    sentence: 'of the same second what was seen first',
    jobs: [job('a', { seen: 2 }), job('b', { seen: 1 })],
    head: 'b',
  },
  { sentence: 'of what was seen at once the first name', jobs: [job('b'), job('a')], head: 'a' },
  {
    sentence: 'what runs goes before what is older',
    jobs: [job('a'), job('b', { second: 2, phase: 'Verifying' })],
    head: 'b',
  },
  { sentence: 'nobody of none', jobs: [], head: undefined },
])('$sentence', ({ jobs, head }) => {
  expect(headOf(jobs, order)?.metadata.name).toBe(head);
});

test('a job waits for what runs and for what is older, and not for itself', () => {
  const [first, second] = [job('a', { second: 1 }), job('b', { second: 2 })];
  const running = job('c', { second: 3, phase: 'Progressing' });
  const rules = { order, supersede: false };
  expect(queueView(first, [first, second], rules).ahead).toBeUndefined();
  expect(queueView(second, [first, second], rules)).toMatchObject({ ahead: first, before: 1 });
  expect(queueView(second, [first, second, running], rules)).toMatchObject({ ahead: running, before: 2 });
  expect(queueView(first, [first, second, running], rules).ahead).toBe(running);
  expect(queueView(running, [first, second, running], rules).ahead).toBeUndefined();
  const ended = job('d', { phase: 'Failed' });
  expect(queueView(ended, [first, running], rules).ahead).toBe(running);
  expect(queueView(ended, [first, second], rules).ahead).toBeUndefined();
});

test('of jobs that left the queue at the same time one returns, which is never one that has begun', () => {
  const preparing = { phase: 'Progressing', stage: 'Preparing' } as const;
  const [a, b] = [job('a', preparing), job('b', { ...preparing, seen: 1 })];
  const rules = { order, supersede: false };
  expect(queueView(a, [a, b], rules).ahead).toBeUndefined();
  expect(queueView(b, [a, b], rules).ahead).toBe(a);
  const begun = job('b', { phase: 'Progressing', stage: 'Updating', seen: 1 });
  expect(queueView(a, [a, begun], rules).ahead).toBe(begun);
  expect(queueView(begun, [a, begun], rules).ahead).toBeUndefined();
  expect(headOf([a, begun], order)).toBe(begun);
});

test.each([
  { sentence: 'the latest later Deploy', others: [job('b', { second: 1 }), job('c', { second: 2 })], by: 'c' },
  { sentence: 'no earlier one', job: job('a', { second: 3 }), others: [job('b', { second: 1 })] },
  { sentence: 'no Rollback', others: [job('b', { second: 1, operation: 'Rollback' })] },
  {
    sentence: 'no Deploy, where it is a Rollback',
    job: job('a', { operation: 'Rollback' }),
    others: [job('b', { second: 1 })],
  },
  { sentence: 'an immediate one', others: [job('b', { second: 1, immediate: true })], supersede: false, by: 'b' },
  { sentence: 'no earlier immediate one', job: job('a', { second: 3 }), others: [job('b', { immediate: true })] },
  { sentence: 'none that is aborted', others: [job('b', { second: 1, abort: true })] },
  { sentence: 'none that runs already', others: [job('b', { phase: 'Progressing' })] },
  { sentence: 'none that is deleted', others: [job('b', { second: 1, deleted: true })] },
  { sentence: 'none where the policy does not say so', others: [job('b', { second: 1 })], supersede: false },
  {
    sentence: 'none once the job runs',
    job: job('a', { phase: 'Progressing' }),
    others: [job('b', { second: 1 })],
  },
  {
    sentence: 'an immediate one, once the job runs',
    job: job('a', { phase: 'Promoting' }),
    others: [job('b', { second: 1, immediate: true })],
    by: 'b',
  },
  {
    sentence: 'no immediate one that is aborted',
    job: job('a', { phase: 'Promoting' }),
    others: [job('b', { second: 1, immediate: true, abort: true })],
  },
  {
    sentence: 'a Rollback, while the job is paused',
    job: job('a', { phase: 'Paused' }),
    others: [job('b', { second: 1, operation: 'Rollback' })],
    by: 'b',
  },
  {
    sentence: 'no Rollback, while it goes on by itself',
    job: job('a', { phase: 'Progressing' }),
    others: [job('b', { second: 1, operation: 'Rollback' })],
  },
  {
    sentence: 'no Rollback, where it is one, too',
    job: job('a', { phase: 'Paused', operation: 'Rollback' }),
    others: [job('b', { second: 1, operation: 'Rollback' })],
  },
])('a job is superseded by: $sentence', ({ job: made = job('a'), others, supersede = true, by }) => {
  expect(queueView(made, [made, ...others], { order, supersede }).supersededBy?.metadata.name).toBe(by);
});
