import { expect, test } from 'vitest';
import { headersOf } from './headers.ts';

const limit = { requests: 100, windowMs: 59_500 };
const policy = { name: 'standard', limit, scope: 'subject:' };
const decision = { limit, remaining: 42, resetAtSeconds: 1_800_000_000, retryAfterSeconds: 17 };

const expected = {
  'x-ratelimit-limit': '100',
  'x-ratelimit-remaining': '42',
  'x-ratelimit-reset': '1800000000',
  'ratelimit-policy': '"standard";q=100;w=60',
  ratelimit: '"standard";r=42;t=17',
};

test('An answer reports the limit in the spellings of the contract and of the IETF', () => {
  expect(headersOf(policy, { ...decision, allowed: true })).toEqual(expected);
});

test('A refusal also says when to come back, not sooner than the window that it reports', () => {
  expect(headersOf(policy, { ...decision, allowed: false })).toEqual({ ...expected, 'retry-after': '17' });
});
