import { deliveryPolicyKind } from '@rollcall/crds/kinds.ts';
import { resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { expect, test } from 'vitest';
import { createWorld, startOperator, until, type World } from './fixtures.ts';

function policyIn({ connection, namespace }: Pick<World, 'connection' | 'namespace'>, name: string, service: string) {
  return resourceClient(connection, deliveryPolicyKind, namespace).create({
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'DeliveryPolicy',
    metadata: { name, namespace },
    // The API server has defaults for the rest.
    spec: { serviceName: service } as never,
  });
}

async function usedOf({ connection, namespace }: World, name: string): Promise<string | undefined> {
  const { status } = await resourceClient(connection, deliveryPolicyKind, namespace).get(name);
  return status?.conditions?.find(({ type }) => type === 'Used')?.reason;
}

test('policies say whether jobs go by them, and one that nobody reads is reported', async (context) => {
  const world = await createWorld(context);
  const elsewhere = await createWorld(context);
  await policyIn(world, 'all', '*');
  await policyIn(world, 'missing', 'nobody');
  await policyIn(world, 'pattern', 'dl-*');
  await policyIn(elsewhere, 'stray', 'shop');
  await startOperator(world, { settings: { ROLLCALL_DELIVERY_NAMESPACES: '*' } });
  const reasons = { all: 'Used', missing: 'NoDeployment', pattern: 'NoPattern' };
  for (const [name, reason] of Object.entries(reasons)) {
    await until(`${name} is ${reason}`, async () => (await usedOf(world, name)) === reason);
  }
  await policyIn(world, 'later', '*');
  await until('the later one says so', async () => (await usedOf(world, 'later')) === 'OlderPolicyCounts');
  await until('the stray one is reported', async () => (await elsewhere.events('stray')).length > 0);
  const [event] = await elsewhere.events('stray');
  expect(event).toMatchObject({ reason: 'WrongNamespace', type: 'Warning' });
  expect(event?.message).toBe(
    `Ignored: Rollcall reads objects of the kind DeliveryPolicy in the namespace ${world.namespace} only`,
  );
  expect(await usedOf(elsewhere, 'stray')).toBeUndefined();
});
