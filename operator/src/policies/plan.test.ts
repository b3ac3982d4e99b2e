import type { DeliveryPolicy } from '@rollcall/crds/types.gen.ts';
import { expect, test } from 'vitest';
import { buildPolicy } from '../delivery/testing/builders.ts';
import { type PolicySnapshot, planPolicy } from './plan.ts';

const now = new Date('2026-11-20T12:00:00Z');

function policy(name: string, serviceName = 'shop'): DeliveryPolicy {
  return {
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'DeliveryPolicy',
    metadata: { name, namespace: 'rollcall', generation: 2 },
    spec: buildPolicy({ serviceName }),
  };
}

function usage(snapshot: Pick<PolicySnapshot, 'policy'> & Partial<PolicySnapshot>) {
  const [change] = planPolicy({ effective: snapshot.policy, hasDeployment: true, now, ...snapshot }).changes;
  return change?.action === 'status' ? (change.status as NonNullable<DeliveryPolicy['status']>) : undefined;
}

test.for<[string, DeliveryPolicy, Partial<PolicySnapshot>, string, string]>([
  ['of a service that runs', policy('shop'), {}, 'True', 'Used'],
  ['of all services', policy('all', '*'), { hasDeployment: false }, 'True', 'Used'],
  ['beside an older one', policy('new'), { effective: policy('old') }, 'False', 'OlderPolicyCounts'],
  ['for a pattern', policy('some', 'dl-*'), { hasDeployment: false }, 'False', 'NoPattern'],
  ['of a service that has this name', policy('some', 'dl-*'), {}, 'True', 'Used'],
  ['of a service that nothing runs', policy('typo', 'shpo'), { hasDeployment: false }, 'False', 'NoDeployment'],
])('a policy %s', ([, made, facts, status, reason]) => {
  expect(usage({ policy: made, ...facts })?.conditions).toMatchObject([{ type: 'Used', status, reason }]);
});

test('what is said already is not written again', () => {
  const made = policy('shop');
  const status = usage({ policy: made });
  if (status === undefined) throw new Error('nothing is written');
  expect(usage({ policy: { ...made, status } })).toBeUndefined();
  expect(usage({ policy: { ...made, status }, hasDeployment: false })).toBeDefined();
});
