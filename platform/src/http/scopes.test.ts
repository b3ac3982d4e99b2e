import { expect, test } from 'vitest';
import { communicationOperations } from './operations/communication.ts';
import { paymentOperations } from './operations/payment.ts';
import {
  channelScope,
  graphqlOperation,
  grpcOperation,
  hasScope,
  isScopeToken,
  restOperation,
  seesAll,
  serviceOperations,
} from './scopes.ts';

test.each([
  ['GET', '/services', 'registrations:read'],
  ['HEAD', '/services/shop', 'registrations:read'],
  ['GET', '/services/watch', 'registrations:read'],
  ['GET', '/services/', 'registrations:read'],
  ['GET', '/services/%73hop', 'registrations:read'],
  ['POST', '/services/register', 'registrations:write'],
  ['POST', '/services/shop/heartbeat', 'registrations:write'],
  ['POST', '/services/shop/composition', 'registrations:write'],
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
  expect(restOperation('registry', method, path)?.scope).toBe(scope);
});

test.each(['/health', '/openapi.json', '/docs', '/docs/', '/docs/static/index.css'])('%s is open', (path) => {
  expect(restOperation('registry', 'GET', path)).toMatchObject({ scope: undefined });
});

test.each([
  ['GET', '/'],
  ['GET', '/Services'],
  ['GET', '/services/shop/heartbeat'],
  ['PUT', '/services'],
  ['GET', '/services/a/b/c'],
  ['POST', '/docs'],
])('%s %s is no operation', (method, path) => {
  expect(restOperation('registry', method, path)).toBeUndefined();
});

test('what cannot be decoded is a name, too', () => {
  expect(restOperation('registry', 'GET', '/services/%E9')?.scope).toBe('registrations:read');
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
  expect(grpcOperation(grpc)).toBe(restOperation('registry', method, path));
});

test('channels take the scope of reading the same', () => {
  expect(channelScope('registrations')).toBe('registrations:read');
  expect(channelScope('jobs')).toBe('jobs:read');
  expect(channelScope('jobs.{service_name}')).toBe('jobs:read');
  expect(() => channelScope('news')).toThrow("no channel 'news'");
});

test('each route, method and channel is in one row', () => {
  for (const operations of serviceOperations.values()) {
    for (const column of ['rest', 'grpc', 'graphql', 'webSocket'] as const) {
      const all = operations.flatMap((operation) => operation[column] ?? []);
      expect(all).toEqual([...new Set(all)]);
    }
  }
});

function operationOf(service: string, route: string) {
  const [method = '', path = ''] = route.split(' ');
  return restOperation(service, method, path);
}

test.each([
  ['communication', 'POST /emails', 'messages:send'],
  ['communication', 'POST /messages/m1/cancel', 'messages:send'],
  ['communication', 'GET /messages/m1', 'messages:read'],
  ['communication', 'POST /templates/welcome/preview', 'messages:read'],
  ['communication', 'PUT /templates/welcome', 'templates:write'],
  ['communication', 'DELETE /suppressions/a%40b.example', 'suppressions:write'],
  ['payment', 'POST /payments', 'payments:write'],
  ['payment', 'HEAD /payments/p1', 'payments:read'],
  ['payment', 'POST /payments/p1/refunds', 'refunds:write'],
  ['payment', 'DELETE /subscriptions/s1', 'billing:write'],
  ['payment', 'GET /invoices/i1/pdf', 'billing:read'],
])('at %s, %s takes %s', (service, route, scope) => {
  expect(operationOf(service, route)?.scope).toBe(scope);
});

test('what a path means depends on the service', () => {
  expect(restOperation('registry', 'POST', '/payments')).toBeUndefined();
  expect(restOperation('shop', 'POST', '/payments')).toBeUndefined();
});

test.each([
  ['communication', 'Mutation.sendSMS', 'POST /sms'],
  ['payment', 'Mutation.createPayment', 'POST /payments'],
  ['payment', 'Query.payment', 'GET /payments/:id'],
])('at %s, %s is the same operation as %s', (service, field, route) => {
  expect(graphqlOperation(service, field)).toBeDefined();
  expect(graphqlOperation(service, field)).toBe(operationOf(service, route));
});

test('who calls without a token may change nothing but what a provider reports', () => {
  const open = [...communicationOperations, ...paymentOperations].filter(({ scope }) => scope === undefined);
  const changing = open.flatMap(({ rest }) => rest).filter((route) => !route.startsWith('GET '));
  expect([...new Set(changing)]).toEqual(['POST /notifications/:provider']);
});

test('an administrator of an area sees all of it, and nothing of another', () => {
  const admin = { scopes: new Set(['payments:admin']) };
  expect([seesAll(admin, 'payments'), seesAll(admin, 'billing')]).toEqual([true, false]);
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
