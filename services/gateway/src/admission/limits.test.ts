import { createLogger } from '@rollcall/platform/process/log.ts';
import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import type { Caller, Tier } from './caller.ts';
import { parseTrustedProxies } from './client-address.ts';
import { DEFAULT_LIMITS } from './limit-for.ts';
import { createLimits, type LimitedRequest, type Verdict } from './limits.ts';

function start() {
  const metrics = new Registry();
  const limits = createLimits({
    limits: DEFAULT_LIMITS,
    trustedProxies: parseTrustedProxies(['10.0.0.0/8']),
    redis: undefined,
    redisPrefix: 'rollcall',
    redisTimeoutMs: 100,
    metrics,
    log: createLogger('test', 'silent'),
  });
  const check = (request: Partial<LimitedRequest>): Verdict => {
    const verdict = limits.check({
      caller: undefined,
      remoteAddress: '203.0.113.5',
      forwardedFor: undefined,
      route: undefined,
      ...request,
    });
    if (verdict instanceof Promise) throw new TypeError('Without Redis the verdict is there at once');
    return verdict;
  };
  /** How many of so many requests are allowed. */
  const allowed = (requests: number, request: Partial<LimitedRequest>): number =>
    Array.from({ length: requests }, () => check(request)).filter(({ refusal }) => refusal === undefined).length;
  return { metrics, check, allowed };
}

const caller = (subject: string, tier: Tier): Caller => ({ subject, tier, scopes: new Set(), expiresAtMs: 0 });

const throughProxy = (claimed: string) => ({ remoteAddress: '10.0.0.1', forwardedFor: `${claimed}, 203.0.113.9` });

test('Each subject has the limit of its tier', () => {
  const { allowed } = start();
  expect(allowed(1100, { caller: caller('a', 'premium') })).toBe(1000);
  expect(allowed(1100, { caller: caller('b', 'standard') })).toBe(100);
  expect(allowed(1100, { caller: caller('c', 'free') })).toBe(10);
  expect(allowed(1100, { caller: caller('d', 'free') })).toBe(10);
});

test('A subject has one limit, wherever it calls from', () => {
  const { allowed } = start();
  expect(allowed(10, { caller: caller('a', 'free'), remoteAddress: '203.0.113.1' })).toBe(10);
  expect(allowed(10, { caller: caller('a', 'free'), remoteAddress: '203.0.113.2' })).toBe(0);
});

test('Who shows no token is counted by address, which no header of its own changes', () => {
  const { allowed } = start();
  expect(allowed(61, throughProxy('1.1.1.1'))).toBe(60);
  expect(allowed(1, throughProxy('2.2.2.2'))).toBe(0);
  expect(allowed(1, { remoteAddress: '203.0.113.9' })).toBe(0);
  expect(allowed(1, { remoteAddress: '203.0.113.8' })).toBe(1);
  expect(allowed(1, { remoteAddress: undefined })).toBe(1);
});

test('A subject that looks like an address is not counted as one', () => {
  const { allowed } = start();
  expect(allowed(60, { remoteAddress: '203.0.113.9' })).toBe(60);
  expect(allowed(10, { caller: caller('203.0.113.9', 'free') })).toBe(10);
});

test('Subjects are told apart however long they are', () => {
  const { allowed } = start();
  const long = 'x'.repeat(10_000);
  expect(allowed(11, { caller: caller(`${long}a`, 'free') })).toBe(10);
  expect(allowed(11, { caller: caller(`${long}b`, 'free') })).toBe(10);
});

test('A route with a limit of its own is counted apart from the others', () => {
  const { allowed } = start();
  const route = { route: 'reports', limits: { free: { requests: 2, windowMs: 1_000_000 } } };
  expect(allowed(5, { caller: caller('a', 'free'), route })).toBe(2);
  expect(allowed(20, { caller: caller('a', 'free') })).toBe(10);
});

test('A refusal is an error of the gateway with all the headers, and is counted', async () => {
  const { check, metrics } = start();
  for (let index = 0; index < 10; index += 1) expect(check({ caller: caller('a', 'free') }).refusal).toBeUndefined();
  const { headers, refusal } = check({ caller: caller('a', 'free') });
  expect(refusal).toMatchObject({ code: 'RATE_LIMITED', headers, details: { policy: 'free', limit: 10 } });
  expect(headers).toMatchObject({ 'x-ratelimit-remaining': '0', 'ratelimit-policy': '"free";q=10;w=60' });
  expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(59);
  expect(Number(headers['retry-after'])).toBeLessThanOrEqual(61);
  expect(await metrics.metrics()).toContain('rollcall_gateway_rate_limited_total{policy="free"} 1');
});

test('Without Redis the gauge says that memory is used', async () => {
  const text = await start().metrics.metrics();
  expect(text).toContain('rollcall_gateway_limiter_store{store="memory"} 1');
  expect(text).toContain('rollcall_gateway_limiter_store{store="redis"} 0');
});
