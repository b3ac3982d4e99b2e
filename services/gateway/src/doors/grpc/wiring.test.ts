import { expect, test } from 'vitest';
import type { Endpoints } from '../../upstream/discovery/endpoints.ts';
import { REGISTRY, type Targets } from '../../upstream/discovery/targets.ts';
import { grpcTargets } from './wiring.ts';

const nothing: Targets = {
  actor: { name: 'targets', start: async () => {}, stop: async () => {} },
  find: () => undefined,
  findRegistered: () => undefined,
  isComplete: () => true,
};

const registry = grpcTargets(nothing, 'http://registry:50051', () => ({}) as Endpoints).find(REGISTRY);
const scopesOf = (service: string, method: string) => registry?.scopesFor?.({ service, method });

test.each([
  ['Get', ['registrations:read']],
  ['Watch', ['registrations:read']],
  ['Register', ['registrations:write']],
  ['ReportHealth', ['registrations:write']],
  ['None', []],
])('%s takes the scopes %j', (method, scopes) => {
  expect(scopesOf('rollcall.registry.v1.Registry', method)).toEqual(scopes);
});

test('health and reflection of the registry take none', () => {
  expect(scopesOf('grpc.health.v1.Health', 'Check')).toEqual([]);
  expect(scopesOf('grpc.reflection.v1.ServerReflection', 'ServerReflectionInfo')).toEqual([]);
});
