import { expect, test } from 'vitest';
import { createBreaker } from './breaker.ts';

function breakerAt() {
  let nowMs = 0;
  const clock = { now: () => new Date(nowMs), monotonicMs: () => nowMs };
  const breaker = createBreaker(clock, { consecutiveFailures: 3, openMs: 1000, maxOpenMs: 3000, probeMs: 500 });
  const fail = () => {
    expect(breaker.tryAcquire()).toBe(true);
    breaker.failed();
  };
  return { breaker, fail, sleep: (ms: number) => (nowMs += ms) };
}

test('failures in a row open it, and only those', () => {
  const { breaker, fail } = breakerAt();
  fail();
  fail();
  breaker.succeeded();
  fail();
  fail();
  expect(breaker.state()).toBe('closed');
  fail();
  expect(breaker.state()).toBe('open');
  expect(breaker.tryAcquire()).toBe(false);
  expect(breaker.retryAfterMs()).toBe(1000);
});

test('after the pause one request passes, and its success closes it', () => {
  const { breaker, fail, sleep } = breakerAt();
  for (let count = 0; count < 3; count += 1) fail();
  sleep(1000);
  expect(breaker.state()).toBe('half-open');
  expect(breaker.tryAcquire()).toBe(true);
  expect(breaker.tryAcquire()).toBe(false);
  breaker.succeeded();
  expect(breaker.state()).toBe('closed');
  expect(breaker.tryAcquire()).toBe(true);
});

test('its failure makes the pause longer, up to the longest', () => {
  const { breaker, fail, sleep } = breakerAt();
  for (let count = 0; count < 3; count += 1) fail();
  for (const pauseMs of [2000, 3000, 3000]) {
    sleep(3000);
    fail();
    expect(breaker.retryAfterMs()).toBe(pauseMs);
  }
});

test('who gives up does not block the next', () => {
  const { breaker, fail, sleep } = breakerAt();
  for (let count = 0; count < 3; count += 1) fail();
  sleep(1000);
  expect(breaker.tryAcquire()).toBe(true);
  breaker.abandoned();
  expect(breaker.tryAcquire()).toBe(true);
});

test('what was under way when it opened does not lengthen the pause', () => {
  const { breaker } = breakerAt();
  for (let count = 0; count < 5; count += 1) expect(breaker.tryAcquire()).toBe(true);
  for (let count = 0; count < 5; count += 1) breaker.failed();
  expect(breaker.retryAfterMs()).toBe(1000);
});

test('a request after the pause that is not answered for long lets another one pass', () => {
  const { breaker, fail, sleep } = breakerAt();
  for (let count = 0; count < 3; count += 1) fail();
  sleep(1000);
  expect(breaker.tryAcquire()).toBe(true);
  sleep(499);
  expect(breaker.tryAcquire()).toBe(false);
  sleep(1);
  expect(breaker.tryAcquire()).toBe(true);
});
