import { expect, test } from 'vitest';
import { judge, type Posted, together } from './outcomes.ts';

const now = new Date('2026-11-27T12:00:00Z');
const judged = (posted: Posted, attempts = 0, random = 0) => judge(posted, { attempts, now, random: () => random });
const answer = (status: number, retryAfter?: string) => ({ status, retryAfter });

test.each([200, 201, 204, 299])('%i is success', (status) => {
  expect(judged(answer(status))).toMatchObject({
    delivery: { state: 'delivered', retrySeconds: undefined, result: `answer ${status}` },
    round: { hasSucceeded: true, hasFailed: false, isGone: false },
  });
});

test.each([301, 302, 400, 401, 404, 422, 429, 500, 503])('%i is tried again', (status) => {
  expect(judged(answer(status))).toMatchObject({
    delivery: { state: 'pending', retrySeconds: 5 },
    round: { hasFailed: true, isGone: false, pauseSeconds: 0 },
  });
});

test('no answer is tried again, and says why', () => {
  expect(judged({ failure: 'no answer: ECONNREFUSED' }).delivery).toEqual({
    state: 'pending',
    retrySeconds: 5,
    result: 'no answer: ECONNREFUSED',
  });
});

test('410 ends the delivery and the endpoint', () => {
  expect(judged(answer(410))).toMatchObject({ delivery: { state: 'dead' }, round: { isGone: true } });
});

test('ten attempts are made within three to four days, further apart each time', () => {
  const delays = Array.from({ length: 10 }, (_, attempts) => judged(answer(500), attempts).delivery.retrySeconds);
  expect(delays.at(-1)).toBeUndefined();
  const known = delays.flatMap((delay) => delay ?? []);
  expect(known).toEqual(known.toSorted((a, b) => a - b));
  const days = known.reduce((sum, delay) => sum + delay, 0) / 86_400;
  expect(days).toBeGreaterThan(3);
  expect(days * 1.2).toBeLessThan(4);
  expect(judged(answer(500), 9).delivery.state).toBe('dead');
});

test('jitter makes a wait longer, by a fifth at most', () => {
  expect(judged(answer(500), 1, 0.999).delivery.retrySeconds).toBeCloseTo(360, 0);
});

test.each([
  ['30', 30],
  ['Fri, 27 Nov 2026 12:02:00 GMT', 120],
  ['0', 0],
  ['soon', 0],
  ['99999999', 86_400],
])('Retry-After: %s makes the endpoint wait for %i s', (retryAfter, seconds) => {
  const { delivery, round } = judged(answer(429, retryAfter));
  expect(round.pauseSeconds).toBe(seconds);
  expect(delivery.retrySeconds).toBe(Math.max(5, seconds));
});

test('attempts together have succeeded where one has, and wait as the longest', () => {
  const rounds = [judged(answer(200)), judged(answer(503, '60')), judged(answer(429, '7'))].map(({ round }) => round);
  expect(together(rounds)).toEqual({ isGone: false, hasSucceeded: true, hasFailed: true, pauseSeconds: 60 });
  expect(together([])).toEqual({ isGone: false, hasSucceeded: false, hasFailed: false, pauseSeconds: 0 });
});
