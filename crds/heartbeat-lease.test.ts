import { expect, test } from 'vitest';
import { heartbeatOf } from './heartbeat-lease.ts';
import { annotations } from './kinds.ts';

const stranger = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'shop', uid: 'stranger' };
const owner = { apiVersion: 'rollcall.dev/v1alpha1', kind: 'ServiceRegistration', name: 'shop', uid: 'life' };

test('a Lease says whose it is, when the heartbeat came, how old it was then, and the TTL', () => {
  expect(
    heartbeatOf({
      metadata: {
        name: 'shop',
        ownerReferences: [stranger, owner],
        annotations: { [annotations.heartbeatAgeMs]: '1500' },
      },
      spec: { renewTime: '2026-11-20T12:00:00.000000Z', leaseDurationSeconds: 60 },
    }),
  ).toEqual({ ownerUid: 'life', renewTime: '2026-11-20T12:00:00.000000Z', ageMs: 1500, ttlSeconds: 60 });
});

test('a Lease that says nothing has no owner, no heartbeat, no age and no TTL', () => {
  const nothing = { ownerUid: undefined, renewTime: undefined, ageMs: 0, ttlSeconds: undefined };
  expect(heartbeatOf({ metadata: { name: 'shop' } })).toEqual(nothing);
  expect(heartbeatOf({ metadata: { name: 'shop', ownerReferences: [stranger] }, spec: {} })).toEqual(nothing);
});

test.each(['', 'old', '-5', 'Infinity', 'NaN'])('the age %j counts as none', (age) => {
  const metadata = { name: 'shop', annotations: { [annotations.heartbeatAgeMs]: age } };
  expect(heartbeatOf({ metadata }).ageMs).toBe(0);
});
