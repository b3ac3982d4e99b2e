import { grpcStatus } from '@rollcall/platform/grpc/status.ts';
import { expect, test } from 'vitest';
import { candidateNames, parseMethodPath, routeCall, scopesOfCall } from './routing.ts';

test.each([
  ['acme.shop.v1.Cart', ['acme.shop.v1.Cart', 'acme.shop.v1', 'acme.shop', 'shop', 'acme']],
  ['shop.v1.Cart', ['shop.v1.Cart', 'shop.v1', 'shop']],
  ['shop.Cart', ['shop.Cart', 'shop']],
  ['shop.v1beta2.Cart', ['shop.v1beta2.Cart', 'shop.v1beta2', 'shop']],
  ['v1.Cart', ['v1.Cart', 'v1']],
  ['Cart', ['Cart']],
  ['rollcall.registry.v1.Registry', ['registry']],
  ['grpc.reflection.v1.ServerReflection', ['registry']],
  ['grpc.reflection.v1alpha.ServerReflection', ['registry']],
])('%s may be registered as %j', (service, names) => {
  expect(candidateNames(service)).toEqual(names);
});

test.each([
  ['/shop.v1.Cart/Add', { service: 'shop.v1.Cart', method: 'Add' }],
  ['/Cart/Add', { service: 'Cart', method: 'Add' }],
])('%s is a method', (path, method) => {
  expect(parseMethodPath(path)).toEqual(method);
});

test.each([
  '',
  '/',
  '/Cart',
  '/Cart/',
  '//Add',
  '/Cart/Add/More',
  '/Cart/Add?x=1',
  '/../Add',
  '/Ca%72t/Add',
  'Cart/Add',
])('%j is no method', (path) => {
  expect(parseMethodPath(path)).toBeUndefined();
});

const registered = (...names: readonly string[]) => ({
  find: (name: string) => (names.includes(name) ? { service: name, origin: `http://${name}` } : undefined),
  known: () => true,
});
const grpcService = 'acme.shop.v1.Cart';
const call = { grpcService, override: undefined, seen: new Set<string>() };

test('the most precise name wins', () => {
  expect(routeCall(call, registered('acme', 'shop', 'acme.shop.v1.Cart')).service).toBe('acme.shop.v1.Cart');
  expect(routeCall(call, registered('acme', 'shop')).service).toBe('shop');
  expect(routeCall(call, registered('acme')).service).toBe('acme');
});

test('the name that the caller gives wins, and no other is tried', () => {
  expect(routeCall({ ...call, override: 'shop-next' }, registered('shop', 'shop-next')).service).toBe('shop-next');
  expect(() => routeCall({ ...call, override: 'shop-next' }, registered('shop'))).toThrow(
    expect.objectContaining({ status: grpcStatus.UNAVAILABLE }),
  );
});

test.each([
  { when: 'nothing of that name was ever registered', targets: registered('other'), status: grpcStatus.UNIMPLEMENTED },
  {
    when: 'it was registered before',
    seen: [grpcService],
    targets: registered('other'),
    status: grpcStatus.UNAVAILABLE,
  },
  {
    when: 'nothing is known yet',
    targets: { ...registered(), known: () => false },
    status: grpcStatus.UNAVAILABLE,
  },
])('where $when the call is refused accordingly', ({ seen = [], targets, status }) => {
  expect(() => routeCall({ ...call, seen: new Set(seen) }, targets)).toThrow(expect.objectContaining({ status }));
});

const REGISTRY_SERVICE = 'rollcall.registry.v1.Registry';

test.each([
  { service: REGISTRY_SERVICE, method: 'Get', scopes: ['registrations:read'] },
  { service: REGISTRY_SERVICE, method: 'Watch', scopes: ['registrations:read'] },
  { service: REGISTRY_SERVICE, method: 'Register', scopes: ['registrations:write'] },
  { service: REGISTRY_SERVICE, method: 'Register', override: 'registry', scopes: ['registrations:write'] },
  { service: REGISTRY_SERVICE, method: 'Register', override: 'another-registry', scopes: [] },
  { service: REGISTRY_SERVICE, method: 'ReportHealth', scopes: ['registrations:write'] },
  { service: REGISTRY_SERVICE, method: 'None', scopes: [] },
  { service: 'grpc.health.v1.Health', method: 'Check', override: 'registry', scopes: [] },
  { service: 'grpc.reflection.v1.ServerReflection', method: 'ServerReflectionInfo', scopes: [] },
  { service: 'acme.shop.v1.Cart', method: 'Register', scopes: [] },
])('$service/$method of $override needs the scopes $scopes', ({ service, method, override, scopes }) => {
  expect(scopesOfCall({ service, method }, override)).toEqual(scopes);
});
