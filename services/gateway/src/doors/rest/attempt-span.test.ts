import { expect, test } from 'vitest';
import { buildRoutes, builtInRules } from '../../upstream/routing/table.ts';
import { attemptAttributes, routePattern, serverAttributes } from './attempt-span.ts';

const endpoint = { origin: 'http://10.0.0.7:8080', basePath: '/base', address: undefined };

test('an attempt by the names of the semantic conventions, without the query', () => {
  const request = { method: 'GET', path: '/api/v1/orders?token=hunter2', retries: 0, endpoint };
  expect(attemptAttributes('shop', request)).toEqual({
    'http.request.method': 'GET',
    'url.full': 'http://10.0.0.7:8080/base/api/v1/orders',
    'server.address': '10.0.0.7',
    'server.port': 8080,
    'rollcall.service': 'shop',
  });
  const again = { ...request, retries: 2, endpoint: { ...endpoint, address: '10.0.0.8' } };
  expect(attemptAttributes('shop', again)).toMatchObject({
    'http.request.resend_count': 2,
    'network.peer.address': '10.0.0.8',
  });
});

test.each([
  ['http://shop', 'shop', 80],
  ['https://shop', 'shop', 443],
  ['http://[2001:db8::1]:81', '[2001:db8::1]', 81],
])('where %s is', (origin, address, port) => {
  expect(serverAttributes(origin)).toEqual({ 'server.address': address, 'server.port': port });
});

test.each([
  ['/api/v1/shop/orders/7', '/api/v1/{service}'],
  ['/api/v1/payment/transactions/7', '/api/v1/payment/transactions'],
  ['/api/graphql', '/api/graphql'],
  ['/elsewhere', undefined],
])('the pattern of %s has few values', (path, pattern) => {
  expect(routePattern(buildRoutes(builtInRules)(path))).toBe(pattern);
});
