import { expect, test } from 'vitest';
import { createReadiness } from './readiness.ts';

const slice = (name: string) => ({ serviceKey: 'team/shop', name });

test('a Service is ready while any of its slices is', () => {
  const readiness = createReadiness();
  readiness.sliceSeen(slice('a'), true, 10);
  readiness.sliceSeen(slice('b'), true, 20);
  expect(readiness.isReady('team/shop')).toBe(true);
  readiness.sliceSeen(slice('a'), false, 30);
  expect(readiness.unreadySinceMs('team/shop', 35)).toBeUndefined();
  readiness.sliceGone(slice('b'), 40);
  expect(readiness.isReady('team/shop')).toBe(false);
  expect(readiness.unreadySinceMs('team/shop', 99)).toBe(40);
});

test('a slice that is not ready again and again starts no new time', () => {
  const readiness = createReadiness();
  readiness.sliceSeen(slice('a'), true, 10);
  for (const atMs of [20, 30, 40]) readiness.sliceSeen(slice('a'), false, atMs);
  expect(readiness.unreadySinceMs('team/shop', 99)).toBe(20);
});

test('a Service that was never ready is so since it was first asked for', () => {
  const readiness = createReadiness();
  expect(readiness.unreadySinceMs('team/shop', 50)).toBe(50);
  expect(readiness.unreadySinceMs('team/shop', 60)).toBe(50);
  readiness.forget('team/shop');
  expect(readiness.unreadySinceMs('team/shop', 70)).toBe(70);
});
