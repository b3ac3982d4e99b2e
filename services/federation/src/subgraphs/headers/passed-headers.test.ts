import { expect, test } from 'vitest';
import { createPassedHeaders, untraced } from './passed-headers.ts';
import { readHeaderRules } from './rules.ts';

const HEADERS = {
  authorization: 'Bearer token',
  'x-rollcall-identity': 'signed',
  'x-rollcall-subject': 'anna',
  'accept-language': 'de',
  'accept-encoding': 'br',
  traceparent: '00-1-2-01',
  cookie: 'session=1',
  host: 'federation',
  'content-length': '12',
  'set-cookie': ['a=1'],
  'x-tenant': 'acme',
  'x-shop-area': 'north',
  'x-shop-till': '7',
  x_shop_area: 'south',
  'x-other': 'o',
};

function passed(rules: object) {
  return createPassedHeaders(readHeaderRules(rules));
}

test('without rules services get the trace and the language, and nothing by which it is shown who calls', () => {
  const headers = passed({});
  const carried = headers.carried(HEADERS);
  expect(headers.forService('shop', carried)).toEqual({ 'accept-language': 'de', traceparent: '00-1-2-01' });
  expect(untraced(carried)).toEqual([['accept-language', 'de']]);
});

test('what is passed on has its name or another, each service has rules of its own, the last one counts', () => {
  const headers = passed({
    all: { request: [{ set: 'X-Tenant', to: 'none' }, { pass: 'X-Tenant' }, { set: 'x-from', to: 'graph' }] },
    services: {
      shop: { request: [{ pass: 'x-shop-*' }, { remove: 'x-shop-till' }, { pass: 'x-tenant', as: 'tenant' }] },
      quiet: { request: [{ remove: 'accept-*' }, { remove: 'x-from' }, { remove: 'traceparent' }] },
    },
  });
  const carried = headers.carried(HEADERS);
  const base = { 'accept-language': 'de', traceparent: '00-1-2-01' };
  expect(headers.forService('other', carried)).toEqual({ ...base, 'x-tenant': 'acme', 'x-from': 'graph' });
  expect(headers.forService('shop', carried)).toEqual({
    ...base,
    'x-tenant': 'acme',
    'x-from': 'graph',
    'x-shop-area': 'north',
    tenant: 'acme',
  });
  expect(headers.forService('quiet', carried)).toEqual({ 'x-tenant': 'acme' });
  expect(headers.forService('other', headers.carried({}))).toEqual({ 'x-tenant': 'none', 'x-from': 'graph' });
});

test.each(['a*', 'c*', 'h*', 's*', 'x-r*'])('by the pattern %s nothing goes that never may', (pattern) => {
  const headers = passed({ all: { request: [{ pass: pattern }] } });
  const got = headers.forService('shop', headers.carried({ ...HEADERS, 'set-cookie': 'a=1' }));
  expect(got).toEqual({ 'accept-language': 'de', traceparent: '00-1-2-01' });
});

test('a client gets nothing of the header of services without rules', () => {
  expect(passed({ all: { request: [{ pass: 'x-tenant' }] } }).collect()).toBeUndefined();
});
