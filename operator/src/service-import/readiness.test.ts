import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { expect, test } from 'vitest';
import type { Endpoints } from './endpoints.ts';
import { createReadiness } from './readiness.ts';

function registration(instanceId?: string): ServiceRegistration {
  return {
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'ServiceRegistration',
    metadata: { name: `shop.i.${instanceId}`, annotations: { 'rollcall.dev/imported-from': 'team/shop' } },
    spec: {
      serviceName: 'shop',
      url: 'http://shop',
      capabilities: [],
      source: 'KubernetesService',
      ...(instanceId === undefined ? {} : { instanceId }),
    },
  };
}

function world() {
  let nowMs = 10;
  let endpoints: Endpoints | undefined = new Map();
  let hasReady = true;
  const clock = { ...systemClock, monotonicMs: () => nowMs };
  const readiness = createReadiness({ hasReady: () => hasReady, of: () => endpoints }, clock);
  return {
    readiness,
    at: (ms: number, ready: Readonly<Record<string, boolean>> | undefined, any = false): void => {
      nowMs = ms;
      hasReady = any;
      const known = Object.entries(ready ?? {});
      const rest = { address: '10.0.0.1', zone: undefined, ports: [] };
      endpoints = ready === undefined ? undefined : new Map(known.map(([id, each]) => [id, { ...rest, ready: each }]));
    },
  };
}

test('an instance is unready since its own endpoint is, and a Service since its last one is', () => {
  const { readiness, at } = world();
  const [a, b, whole] = [registration('a'), registration('b'), registration()];
  at(20, { a: true, b: false }, true);
  expect([a, b, whole].map(readiness.look)).toEqual([false, true, false]);
  at(30, { a: false, b: false });
  expect([a, b, whole].map(readiness.look)).toEqual([true, false, true]);
  at(40, { b: true }, true);
  expect([a, b, whole].map(readiness.unreadySinceMs)).toEqual([30, undefined, undefined]);
  expect([a, b, whole].map(readiness.isEndpointReady)).toEqual([false, true, undefined]);
});

test('what nobody knows is not unready', () => {
  const { readiness, at } = world();
  at(20, { a: false });
  readiness.look(registration('a'));
  at(30, undefined);
  expect(readiness.unreadySinceMs(registration('a'))).toBeUndefined();
});

test('a successor of the same name begins anew', () => {
  const { readiness, at } = world();
  at(20, { a: false });
  readiness.look(registration('a'));
  readiness.forget(registration('a'));
  at(50, { a: false });
  expect(readiness.unreadySinceMs(registration('a'))).toBe(50);
});
