import { expect, test } from 'vitest';
import { readHeaderRules } from './rules.ts';

const FAULTS: readonly (readonly [object, string])[] = [
  [{ pass: 'Authorization' }, 'authorization, which is never passed on'],
  [{ pass: 'cookie' }, 'cookie, which is never passed on'],
  [{ pass: 'content-*' }, 'content-, which is never passed on'],
  [{ pass: 'x-rollcall-identity' }, 'x-rollcall-identity, which is never passed on'],
  [{ pass: 'x-rollcall-*' }, 'x-rollcall-, which is never passed on'],
  [{ pass: 'x-tenant', as: 'X-Rollcall-Subject' }, 'x-rollcall-subject, which is never passed on'],
  [{ pass: 'x-tenant', as: 'traceparent' }, 'traceparent, which is never passed on'],
  [{ set: 'Transfer-Encoding', to: 'chunked' }, 'transfer-encoding, which is never passed on'],
  [{ set: 'accept-encoding', to: 'br' }, 'accept-encoding, which is never passed on'],
  [{ pass: 'sec-websocket-key' }, 'sec-websocket-key, which is never passed on'],
  [{ pass: 'x-*', as: 'y' }, 'gives many one name'],
  [{ pass: 'x', remove: 'x' }, 'must have one of pass, set and remove'],
  [{ merge: 'first' }, 'must have one of pass, set and remove'],
  [{ set: 'x' }, 'must have set and to together'],
  [{ pass: 'x', to: 'y' }, 'must have set and to together'],
  [{ remove: 'x', as: 'y' }, 'has as or merge without pass'],
  [{ pass: 'x', merge: 'first' }, 'has merge, which is for answers'],
  [{ pass: '*' }, '/all/request/0/pass'],
  [{ pass: 'x_tenant' }, '/all/request/0/pass'],
  [{ pass: 'x', as: 'a b' }, '/all/request/0/as'],
  [{ set: 'x', to: 'a\r\nb: c' }, '/all/request/0/to'],
  [{ set: 'x', to: '' }, '/all/request/0/to'],
  [{ pass: 'x', more: 1 }, '/all/request/0'],
];

test.each(FAULTS)('%j is refused for requests', (rule, why) => {
  expect(() => readHeaderRules({ all: { request: [rule] } })).toThrow(why);
});

test.each([
  [{ pass: 'set-cookie' }, 'set-cookie, which is never passed on'],
  [{ pass: 'x-cost', as: 'etag' }, 'etag, which is never passed on'],
  [{ pass: 'access-control-allow-origin' }, 'access-control-allow-origin, which is never passed on'],
  [{ pass: 'X-RateLimit-Limit' }, 'x-ratelimit-limit, which is never passed on'],
  [{ pass: 'x-accel-redirect' }, 'x-accel-redirect, which is never passed on'],
  [{ pass: 'Cache-Control', merge: 'first' }, 'has one name and one way to be merged'],
  [{ pass: 'x-cache', as: 'cache-control' }, 'has one name and one way to be merged'],
])('%j is refused for answers', (rule, why) => {
  expect(() => readHeaderRules({ services: { shop: { response: [rule] } } })).toThrow(why);
});

test('all faults of rules are told at once', () => {
  const given = { all: { request: [{ pass: 'cookie' }] }, services: { 'a/b': { response: [{ pass: 'date' }] } } };
  expect(() => readHeaderRules(given)).toThrow(
    /all\/request\/0 has cookie.*services\/a\/b: the name.*response\/0 has date/,
  );
});

test.each([undefined, [], 'x', { one: {} }, { all: { both: [] } }])('%j is no set of rules', (given) => {
  expect(() => readHeaderRules(given)).toThrow('The rules of header fields are not valid');
});
