import { describe, expect, test } from 'vitest';
import { bodyLimitFor, buildRoutes, builtInRules, defaults, type RouteRule, scopesFor } from './table.ts';

const rule = (prefix: string, more: Partial<RouteRule> = {}): RouteRule => ({
  ...defaults(),
  prefix,
  service: 'special',
  upstreamPrefix: '/x',
  ...more,
});

function scopesOf(method: string, path: string, rules = builtInRules): readonly string[] | undefined {
  const found = buildRoutes(rules)(path);
  return found && scopesFor(found, method);
}

describe('routes', () => {
  const route = buildRoutes(builtInRules);

  test.each([
    ['/api/v1/shop/orders/7', 'shop', '/api/v1/orders/7'],
    ['/api/v1/auth/users', 'auth', '/api/v1/users'],
    ['/api/v1/lms/courses', 'lms', '/api/v1/courses'],
    ['/api/v1/payment/transactions', 'payment', '/api/v1/payments'],
    ['/api/v1/payment/transactions/7', 'payment', '/api/v1/payments/7'],
    ['/api/v1/payment/transactionsX', 'payment', '/api/v1/transactionsX'],
    ['/api/v1/payment/%74ransactions/%37', 'payment', '/api/v1/payments/%37'],
    ['/%61pi/v1/p%61yment/transactions/a%20b/', 'payment', '/api/v1/payments/a%20b/'],
    ['/api/v1/payment/invoices', 'payment', '/api/v1/invoices'],
    ['/api/v1/payment/graphql', 'payment', '/api/graphql'],
    ['/api/v1/communication/graphql', 'communication', '/api/graphql'],
    ['/api/v1/shop/graphql', 'shop', '/api/v1/graphql'],
    ['/api/v1/shop', 'shop', '/api/v1'],
    ['/api/v1/shop/', 'shop', '/api/v1/'],
    ['/api/v1/caf%C3%A9/menu', 'café', '/api/v1/menu'],
    ['/api/graphql', 'federation', '/api/graphql'],
    ['/api/v1/federation/graphql', 'federation', '/api/graphql'],
    ['/api/v1/federation/schemas', 'federation', '/api/schemas'],
    ['/api/v1/federation/docs/static/index.html', 'federation', '/api/docs/static/index.html'],
    ['/api/v1/federation', 'federation', '/api'],
    ['/pay/tok', 'payment', '/pay/tok'],
    ['/pay', 'payment', '/pay'],
    ['/unsubscribe/tok/', 'communication', '/unsubscribe/tok/'],
    ['/api/v1/payment/notifications/payfast', 'payment', '/api/v1/notifications/payfast'],
    ['/api/v1/communication/notifications/bulksms/s3cret', 'communication', '/api/v1/notifications/bulksms/s3cret'],
    ['/api/v1/payment/notificationsX', 'payment', '/api/v1/notificationsX'],
    ['/api/v1/shop/Orders;v=1/X', 'shop', '/api/v1/Orders;v=1/X'],
    ['/api/v1/registry', 'registry', '/api/v1'],
    ['/api/v1/registry/services/Shop', 'registry', '/api/v1/services/Shop'],
    ['/api/v1/registry/webhooks/deploy', 'registry', '/api/v1/webhooks/deploy'],
  ])('%s', (path, service, upstream) => {
    expect(route(path)).toMatchObject({ service, path: upstream });
  });

  test.each([
    '/payroll',
    '/unsubscribed/x',
    '/',
    '/api',
    '/api/v1',
    '/api/v1/',
    '/api/v2/shop',
    '/apiv1/shop',
    '/api/v1/%E9/menu',
  ])('%s goes nowhere', (path) => {
    expect(route(path)).toBeUndefined();
  });

  test.each([
    ['/pay/tok', ['GET', 'HEAD', 'POST'], 600],
    ['/unsubscribe/tok', ['GET', 'HEAD', 'POST'], 12_000],
    ['/api/v1/payment/notifications/yoco', ['POST'], 12_000],
    ['/api/v1/communication/notifications/twilio', ['POST'], 12_000],
  ])('%s is open to %j, and counted by itself', (path, methods, requests) => {
    const { rule } = route(path) ?? {};
    expect(rule).toMatchObject({ anonymous: true, methods, scopes: [], writeScopes: [] });
    expect(rule?.limits?.limits).toEqual({ anonymous: { requests, windowMs: 60_000 } });
  });

  test('no two built-in rules with a limit share its count', () => {
    const names = builtInRules.flatMap(({ limits }) => limits?.route ?? []);
    expect(names.length).toBeGreaterThan(3);
    expect(new Set(names).size).toBe(names.length);
    // Those of the routes file have none.
    for (const name of names) expect(name).toContain('.');
  });

  test('nothing else is open but documents', () => {
    const open = builtInRules.filter(({ anonymous }) => anonymous).map(({ prefix }) => prefix);
    expect(open.toSorted()).toEqual([
      '/api/v1/communication/docs',
      '/api/v1/communication/notifications',
      '/api/v1/communication/openapi.json',
      '/api/v1/federation/docs',
      '/api/v1/federation/openapi.json',
      '/api/v1/payment/docs',
      '/api/v1/payment/notifications',
      '/api/v1/payment/openapi.json',
      '/api/v1/registry/docs',
      '/api/v1/registry/openapi.json',
      '/pay',
      '/unsubscribe',
    ]);
  });

  test('the longest rule holds, and of two of the same prefix the first', () => {
    const rules = [rule('/a'), rule('/a/b', { service: 'first' }), rule('/a/b', { service: 'second' })];
    expect(buildRoutes(rules)('/a/b/c')).toEqual({ service: 'first', path: '/x/c', rule: rules[1] });
    expect(buildRoutes(rules)('/a/c')).toMatchObject({ service: 'special', path: '/x/c' });
  });

  test.each([
    ['/a b/café', '/a%20b/caf%C3%A9/%E9', '/x/%E9'],
    ['/a%20b', '/a%20b/c', '/x/c'],
    ['/%61', '/a', '/x'],
    ['/a:b', '/a%3ab/c', '/x/c'],
    ['', '/%61', '/x/%61'],
  ])('a rule for %j holds for %s, whichever of its characters are encoded', (prefix, path, upstream) => {
    expect(buildRoutes([rule(prefix)])(path)).toMatchObject({ service: 'special', path: upstream });
  });

  test.each([
    '/api/v1/shop/admin;x/users',
    '/api/v1/shop/admin;x',
    '/api/v1/shop;x/admin',
    '/api/v1/shop/admin%3bx/users',
    '/api/v1/shop/Admin/users',
    '/api/v1/shop/%41dmin',
    '/API/v1/shop/admin',
  ])('%s, which a service may take for a path with a rule, is refused', (path) => {
    const route = buildRoutes([rule('/api/v1/shop/admin'), rule('/api/v1/shop')]);
    expect(() => route(path)).toThrow(expect.objectContaining({ code: 'INVALID_PATH' }));
  });

  test('rules may differ in case alone, and below them everything may be in any', () => {
    const route = buildRoutes([rule('/a/B', { service: 'upper' }), rule('/a/b', { service: 'lower' })]);
    expect(route('/a/B/C;d')).toMatchObject({ service: 'upper', path: '/x/C;d' });
    expect(route('/a/b/C;d')).toMatchObject({ service: 'lower', path: '/x/C;d' });
  });

  test.each([
    ['GET', '/api/v1/registry/services', ['registrations:read']],
    ['HEAD', '/api/v1/registry/jobs', ['jobs:read']],
    ['POST', '/api/v1/registry/services/register', ['registrations:write']],
    ['POST', '/api/v1/%72egistry/%73ervices/shop/heartbeat', ['registrations:write']],
    ['GET', '/api/v1/registry/health', []],
    ['GET', '/api/v1/registry', []],
    ['POST', '/api/v1/shop/services/register', []],
    ['POST', '/api/v1/payment/transactions', ['payments:write']],
    ['GET', '/api/v1/payment/transactions/7', ['payments:read']],
    ['POST', '/api/v1/payment/transactions/7/refunds', ['refunds:write']],
    ['POST', '/api/v1/communication/%65mails', ['messages:send']],
    ['POST', '/api/v1/communication/graphql', []],
    ['GET', '/api/v1/communication/health', []],
    ['GET', '/api/v1/communication/nothing', []],
    ['GET', '/api/v1/federation/schemas', ['schemas:read']],
    ['POST', '/api/v1/federation/schemas/refresh', ['schemas:write']],
    ['DELETE', '/api/v1/federation/%73chemas/shop', ['schemas:write']],
    ['GET', '/api/v1/federation/health', []],
    ['POST', '/api/graphql', []],
  ])('%s %s needs the scopes %j', (method, path, scopes) => {
    expect(scopesOf(method, path)).toEqual(scopes);
  });

  test('a rule that leads to the registry takes its scopes, and those of the operation', () => {
    const open = rule('/open', { service: 'registry', upstreamPrefix: '/api/v1/services', anonymous: true });
    expect(scopesOf('GET', '/open', [open])).toEqual(['registrations:read']);
    expect(scopesOf('GET', '/open/shop', [{ ...open, scopes: ['shops'] }])).toEqual(['shops', 'registrations:read']);
    expect(scopesOf('DELETE', '/open/shop', [{ ...open, writeScopes: ['own'] }])).toEqual([
      'own',
      'registrations:write',
    ]);
  });

  test('a prefix may go away altogether', () => {
    expect(buildRoutes([rule('/old', { upstreamPrefix: '' })])('/old')).toMatchObject({ path: '/' });
    expect(buildRoutes([rule('/old', { upstreamPrefix: '' })])('/old/a')).toMatchObject({ path: '/a' });
  });
});

test.each([
  ['POST', '/api/v1/communication/emails', 15],
  ['POST', '/api/v1/communication/graphql', 15],
  ['POST', '/api/v1/communication/sms', 10],
  ['POST', '/api/v1/payment/graphql', 10],
  ['POST', '/api/v1/shop/emails', 10],
])('%s %s may have %i MiB', (method, path, mebibytes) => {
  const found = buildRoutes(builtInRules)(path);
  const usual = 10 * 1024 * 1024;
  expect(found && bodyLimitFor(found, method, usual)).toBe(mebibytes * 1024 * 1024);
  expect(found && bodyLimitFor(found, method, 2 * usual)).toBe(2 * usual);
});
