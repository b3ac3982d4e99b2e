import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import { expect, test } from 'vitest';
import { createNameItems } from './name-items.ts';

/** All were created within one second. */
function instance(instanceId: string, version: number): ServiceRegistration {
  return {
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'ServiceRegistration',
    metadata: {
      name: `shop.i.${instanceId}`,
      uid: `uid-${instanceId}`,
      resourceVersion: String(version),
      creationTimestamp: '2026-11-26T10:00:00Z',
    },
    spec: { serviceName: 'shop', instanceId, url: 'http://a', capabilities: [], source: 'API', ttlSeconds: 60 },
  };
}

test('instances are in the order in which the watch brought them, whatever their names are', () => {
  const items = createNameItems();
  items.listed([], 10);
  items.changed(instance('b', 11), false);
  items.changed(instance('a', 12), false);
  // Changed since, it is the first all the same.
  items.changed(instance('b', 13), false);
  expect(items.instancesSince('shop', 12)?.map(({ instanceId }) => instanceId)).toEqual(['b', 'a']);
});

test('what came in a list has no order: others may have seen another one first', () => {
  const items = createNameItems();
  items.listed([instance('a', 12), instance('b', 11)], 12);
  expect(items.instancesSince('shop', 12)).toBeUndefined();
  items.changed(instance('c', 13), false);
  expect(items.instancesSince('shop', 13)).toHaveLength(3);
});
