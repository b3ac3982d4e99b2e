import { expect, test } from 'vitest';
import { channelScope, grpcOperation, hasScope, isScopeToken, operations, restOperation } from './scopes.ts';

test.each([
  ['GET', '/services', 'registrations:read'],
  ['HEAD', '/services/shop', 'registrations:read'],
  ['GET', '/services/watch', 'registrations:read'],
  ['GET', '/services/', 'registrations:read'],
  ['GET', '/services/%73hop', 'registrations:read'],
  ['POST', '/services/register', 'registrations:write'],
  ['POST', '/services/shop/heartbeat', 'registrations:write'],
  ['DELETE', '/services/shop', 'registrations:write'],
  ['POST', '/webhooks/health', 'registrations:write'],
  ['POST', '/webhooks/%68ealth', 'registrations:write'],
  ['POST', '/webhooks/lifecycle', 'registrations:write'],
  ['GET', '/jobs', 'jobs:read'],
  ['GET', '/jobs/watch', 'jobs:read'],
  ['GET', '/jobs/j1', 'jobs:read'],
  ['GET', '/jobs/j1/events', 'jobs:read'],
  ['GET', '/updates/history', 'jobs:read'],
  ['GET', '/updates/history/shop', 'jobs:read'],
  ['GET', '/updates/history/shop/export/csv', 'jobs:read'],
  ['GET', '/updates/statistics', 'jobs:read'],
  ['POST', '/webhooks/check-updates', 'jobs:read'],
  ['GET', '/webhooks/config', 'jobs:read'],
  ['GET', '/webhooks/deliveries', 'jobs:read'],
  ['GET', '/webhooks/deliveries/d1', 'jobs:read'],
  ['POST', '/webhooks/update', 'jobs:write'],
  ['POST', '/webhooks/deploy', 'jobs:write'],
  ['POST', '/webhooks/rollback', 'jobs:write'],
  ['POST', '/webhooks/config', 'jobs:write'],
  ['POST', '/webhooks/notify', 'jobs:write'],
  ['POST', '/webhooks/deliveries/d1/replay', 'jobs:write'],
  ['POST', '/jobs/j1/promote', 'jobs:write'],
  ['POST', '/jobs/j1/abort', 'jobs:write'],
  ['GET', '/metrics', 'metrics:read'],
])('%s %s takes %s', (method, path, scope) => {
  expect(restOperation(method, path)?.scope).toBe(scope);
});

test.each(['/health', '/openapi.json', '/docs', '/docs/', '/docs/static/index.css'])('%s is open', (path) => {
  expect(restOperation('GET', path)).toMatchObject({ scope: undefined });
});

test.each([
  ['GET', '/'],
  ['GET', '/Services'],
  ['GET', '/services/shop/heartbeat'],
  ['PUT', '/services'],
  ['GET', '/services/a/b/c'],
  ['POST', '/docs'],
])('%s %s is no operation', (method, path) => {
  expect(restOperation(method, path)).toBeUndefined();
});

test('what cannot be decoded is a name, too', () => {
  expect(restOperation('GET', '/services/%E9')?.scope).toBe('registrations:read');
});

test.each([
  ['Register', 'POST', '/services/register'],
  ['Unregister', 'DELETE', '/services/shop'],
  ['Get', 'GET', '/services/shop'],
  ['List', 'GET', '/services'],
  ['Watch', 'GET', '/services/watch'],
  ['Heartbeat', 'POST', '/services/shop/heartbeat'],
  ['ReportHealth', 'POST', '/webhooks/health'],
  ['ReportLifecycle', 'POST', '/webhooks/lifecycle'],
])('%s is the same operation as %s %s', (grpc, method, path) => {
  expect(grpcOperation(grpc)).toBeDefined();
  expect(grpcOperation(grpc)).toBe(restOperation(method, path));
});

test('channels take the scope of reading the same', () => {
  expect(channelScope('registrations')).toBe('registrations:read');
  expect(channelScope('jobs')).toBe('jobs:read');
  expect(channelScope('jobs.{service_name}')).toBe('jobs:read');
  expect(() => channelScope('news')).toThrow("no channel 'news'");
});

test('each route, method and channel is in one row', () => {
  for (const column of ['rest', 'grpc', 'webSocket'] as const) {
    const all = operations.flatMap((operation) => operation[column] ?? []);
    expect(all).toEqual([...new Set(all)]);
  }
});

test('a scope is had by itself, or by *', () => {
  expect(hasScope({ scopes: new Set(['a', 'jobs:read']) }, 'jobs:read')).toBe(true);
  expect(hasScope({ scopes: new Set(['*']) }, 'jobs:read')).toBe(true);
  expect(hasScope({ scopes: new Set(['jobs', 'jobs:*', 'Jobs:read']) }, 'jobs:read')).toBe(false);
});

test.each(['a', 'jobs:read', '*', '!', '#', '[', ']', '~', 'https://x.example/y?z=1'])('%j is a scope', (text) => {
  expect(isScopeToken(text)).toBe(true);
});

test.each(['', ' ', 'a b', '"', '\\', '\u007f', '\n', 'a\n', 'é'])('%j is none', (text) => {
  expect(isScopeToken(text)).toBe(false);
});
