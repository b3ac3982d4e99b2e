import { expect, test } from 'vitest';
import { DEFAULT_LIMITS, type LimitedTier, limitFor, type RouteLimits } from './limit-for.ts';

const TIERS: readonly LimitedTier[] = ['premium', 'standard', 'free', 'anonymous'];
const reports: RouteLimits = {
  route: 'reports',
  limits: { standard: { requests: 5, windowMs: 1000 }, anonymous: { requests: 1, windowMs: 1000 } },
};

const scope = (tier: LimitedTier, route?: RouteLimits): string => limitFor(tier, route, DEFAULT_LIMITS).scope;

test('The tiers have the limits of the contract', () => {
  expect(TIERS.map((tier) => limitFor(tier, undefined, DEFAULT_LIMITS).limit)).toEqual(
    [1000, 100, 10, 60].map((requests) => ({ requests, windowMs: 60_000 })),
  );
});

test('The limits of the tiers can be others', () => {
  const free = { requests: 3, windowMs: 500 };
  expect(limitFor('free', undefined, { ...DEFAULT_LIMITS, free }).limit).toBe(free);
});

test('A route replaces the limits of the tiers that it names, and no others', () => {
  expect(TIERS.map((tier) => limitFor(tier, reports, DEFAULT_LIMITS).limit.requests)).toEqual([1000, 5, 10, 1]);
});

test('What a route limits is counted by itself, all else together, and addresses apart from subjects', () => {
  expect(scope('premium')).toBe(scope('free'));
  expect(scope('free', reports)).toBe(scope('free'));
  expect(
    new Set([scope('free'), scope('standard', reports), scope('anonymous'), scope('anonymous', reports)]).size,
  ).toBe(4);
});

test('No subject is seen as another with a route, whatever it is called', () => {
  expect(`${scope('free')}reports:shop`).not.toBe(`${scope('standard', reports)}shop`);
});

test('Headers name the tier, and the route where that has its own limit', () => {
  expect(limitFor('free', reports, DEFAULT_LIMITS).name).toBe('free');
  expect(limitFor('standard', reports, DEFAULT_LIMITS).name).toBe('standard-reports');
});
