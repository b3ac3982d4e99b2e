import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { beforeEach, expect, test } from 'vitest';
import { tokenReviewer } from './token-review.ts';

let nowMs = 0;
let answers: (() => Promise<unknown>)[] = [];
let reviews = 0;

const clock = { now: () => new Date(nowMs), monotonicMs: () => nowMs };
/** Answers with what is next. */
const connection = {
  request: () => {
    reviews += 1;
    return answers.shift()?.() ?? Promise.reject(new Error('nothing more was to be asked'));
  },
} as unknown as KubeConnection;

const known = (username: string) => async () => ({
  status: { authenticated: true, audiences: ['rollcall'], user: { username } },
});

beforeEach(() => {
  nowMs = 0;
  reviews = 0;
});

test('calls with one token at the same time are one question, and other tokens have their own', async () => {
  const subjectOf = tokenReviewer({ connection, clock, audience: 'rollcall' });
  answers = [known('alice'), known('bob')];
  const asked = [...Array.from({ length: 50 }, () => subjectOf('a')), subjectOf('b')];
  expect(new Set(await Promise.all(asked))).toEqual(new Set(['alice', 'bob']));
  expect(reviews).toBe(2);
  expect(await subjectOf('a')).toBe('alice');
  expect(reviews).toBe(2);
});

test('an answer is kept for 30 s', async () => {
  const subjectOf = tokenReviewer({ connection, clock, audience: 'rollcall' });
  answers = [known('alice'), known('nobody any more')];
  expect(await subjectOf('a')).toBe('alice');
  nowMs = 29_999;
  expect(await subjectOf('a')).toBe('alice');
  nowMs = 30_000;
  expect(await subjectOf('a')).toBe('nobody any more');
});

test('a question that failed fails those that shared it, and is asked again by the next', async () => {
  const subjectOf = tokenReviewer({ connection, clock, audience: 'rollcall' });
  answers = [() => Promise.reject(new Error('gone')), known('alice')];
  const failed = await Promise.allSettled([subjectOf('a'), subjectOf('a')]);
  expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await subjectOf('a')).toBe('alice');
});
