import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { deliveryPolicyKind } from '@rollcall/crds/kinds.ts';
import type { DeliveryPolicy } from '@rollcall/crds/types.gen.ts';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { buildDeployment, buildPolicy } from '../testing/builders.ts';
import { deadlineSeconds } from '../workload/rollout.ts';
import { policyFor, settlePolicy } from './default-policy.ts';

interface Schema {
  readonly type?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
}

/** What the API server makes of a value that leaves out what has a default. */
function withDefaults(schema: Schema, value: unknown): unknown {
  if (schema.type !== 'object' || schema.properties === undefined) return value;
  const filled: Record<string, unknown> = { ...(value as object) };
  for (const [name, property] of Object.entries(schema.properties)) {
    const given = filled[name] ?? property.default;
    if (given !== undefined) filled[name] = withDefaults(property, given);
  }
  return filled;
}

function policy(name: string, serviceName: string, creationTimestamp: string): DeliveryPolicy {
  const { apiVersion, kind } = deliveryPolicyKind;
  return {
    apiVersion,
    kind,
    metadata: { name, creationTimestamp },
    spec: policyFor(serviceName, () => []),
  } as DeliveryPolicy;
}

test('without any policy the defaults of the custom resource count', async () => {
  const file = join(import.meta.dirname, '../../../../crds/deliverypolicies.yaml');
  const crd = parse(await readFile(file, 'utf8')) as {
    spec: { versions: { schema: { openAPIV3Schema: { properties: { spec: Schema } } } }[] };
  };
  const schema = crd.spec.versions[0]?.schema.openAPIV3Schema.properties.spec ?? {};
  expect(policyFor('shop', () => [])).toEqual(withDefaults(schema, { serviceName: 'shop' }));
});

test('the policy of the service goes before the one of all services, and the oldest before others', () => {
  const all = policy('all', '*', '2026-01-01T00:00:00Z');
  const old = policy('z-old', 'shop', '2026-01-02T00:00:00Z');
  const young = policy('a-young', 'shop', '2026-01-03T00:00:00Z');
  const known = [young, all, old];
  const policiesOf = (serviceName: string) => known.filter(({ spec }) => spec.serviceName === serviceName);
  expect(policyFor('shop', policiesOf)).toBe(old.spec);
  expect(policyFor('billing', policiesOf)).toBe(all.spec);
});

const { bakeSeconds } = buildPolicy().rolling;
const kubernetes = { maxSurge: '25%', maxUnavailable: '25%', progressDeadlineSeconds: 600 };
const ports = { maxSurge: 0, maxUnavailable: 1 };
test.for<[string, object, object | undefined, object]>([
  ['no Deployment', {}, undefined, kubernetes],
  ['one that says nothing', {}, { strategy: {}, progressDeadlineSeconds: undefined }, kubernetes],
  ['one that cannot surge', {}, { strategy: { rollingUpdate: ports } }, { ...ports, progressDeadlineSeconds: 300 }],
  ['one field', { maxSurge: '50%' }, { strategy: { rollingUpdate: ports } }, { maxSurge: '50%', maxUnavailable: 1 }],
  [
    'another',
    { maxUnavailable: 0 },
    { strategy: { rollingUpdate: { maxSurge: 2 } } },
    { maxSurge: 2, maxUnavailable: 0 },
  ],
  ['the deadline', { progressDeadlineSeconds: 7 }, {}, { progressDeadlineSeconds: 7, maxSurge: '50%' }],
  ['no deadline', {}, { progressDeadlineSeconds: 2_147_483_647 }, { progressDeadlineSeconds: 86_400 }],
])('what a policy leaves out the Deployment says: %s', ([, rolling, spec, expected]) => {
  const policy = { ...buildPolicy(), rolling: { bakeSeconds, ...rolling } };
  const deployment = spec === undefined ? undefined : buildDeployment({ spec });
  expect(settlePolicy(policy, deployment).rolling).toMatchObject({ bakeSeconds, ...expected });
});

test.for([1, 300, 2_147_483_647])('a deadline of %s s that is the own one of a Deployment stays', (own) => {
  const deployment = buildDeployment({ spec: { progressDeadlineSeconds: own } });
  const policy = settlePolicy({ ...buildPolicy(), rolling: { bakeSeconds } }, deployment);
  expect(deadlineSeconds(policy, deployment)).toBe(own);
});
