import { expect, test } from 'vitest';
import type { Endpoints } from '../../upstream/discovery/endpoints.ts';
import { REGISTRY, type Targets } from '../../upstream/discovery/targets.ts';
import { buildRoutes, builtInRules, scopesFor } from '../../upstream/routing/table.ts';
import { grpcTargets } from './wiring.ts';

const nothing: Targets = {
  actor: { name: 'targets', start: async () => {}, stop: async () => {} },
  find: () => undefined,
  findRegistered: () => undefined,
  isComplete: () => true,
};

const registry = grpcTargets(nothing, 'http://registry:50051', () => ({}) as Endpoints).find(REGISTRY);
const scopesOf = (service: string, method: string) => registry?.scopesFor?.({ service, method });
const route = buildRoutes(builtInRules);

test.each([
  ['Register', 'POST', '/services/register'],
  ['Unregister', 'DELETE', '/services/shop'],
  ['Get', 'GET', '/services/shop'],
  ['List', 'GET', '/services'],
  ['Watch', 'GET', '/services/watch'],
  ['Heartbeat', 'POST', '/services/shop/heartbeat'],
  ['ReportHealth', 'POST', '/webhooks/health'],
  ['ReportLifecycle', 'POST', '/webhooks/lifecycle'],
])('%s takes the scopes that %s %s takes', (method, restMethod, path) => {
  const rule = route(`/api/v1/registry${path}`)?.rule;
  const overRest = rule && scopesFor(rule, restMethod);
  expect(overRest).toBeDefined();
  expect(scopesOf('rollcall.registry.v1.Registry', method)).toEqual(overRest);
});

test('health and reflection of the registry take none', () => {
  expect(scopesOf('grpc.health.v1.Health', 'Check')).toEqual([]);
  expect(scopesOf('grpc.reflection.v1.ServerReflection', 'ServerReflectionInfo')).toEqual([]);
});
