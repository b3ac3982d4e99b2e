import { expect, test } from 'vitest';
import { checkServiceName, checkServiceUrl, isServiceName } from './validation.ts';

test.each(['shop', 'Shop', 'a', 'größe-日本', 'a.b_c', 'x'.repeat(253), 'emoji-😀', '-', '_proto_', '__proto__'])(
  'the name %j is legal',
  (name) => {
    expect(isServiceName(name)).toBe(true);
  },
);

test.each([
  '',
  'a:b',
  ':',
  'a b',
  'a\tb',
  'a\nb',
  'a\u0000',
  'a\u00a0b',
  'a\u2028',
  '\ud800',
  '*',
  'x'.repeat(254),
  'x'.repeat(10_000),
])('the name %j is refused with a reason', (name) => {
  expect(() => checkServiceName(name)).toThrow(/^service_name/);
});

test.each([
  'http://shop',
  'https://shop.example:8443/base?x=1',
  'http://127.0.0.1:3000',
  'http://[::1]:80/',
  'HTTP://SHOP',
  'http://a/@b',
])('the URL %j is legal', (url) => {
  expect(() => checkServiceUrl(url)).not.toThrow();
});

test.each([
  '',
  '/relative',
  'shop.example',
  '//shop.example',
  'http://',
  'http:///path',
  'http:shop',
  'javascript:alert(1)',
  'ftp://shop',
  'http://user:password@shop',
  'http://user@shop',
  'http://sh op',
  'http://shop\n',
  'http://shop:99999',
  'http://a\\b',
  'http://a%41b/',
  `http://shop/${'x'.repeat(10_000)}`,
])('the URL %j is refused without being repeated', (url) => {
  expect(() => checkServiceUrl(url)).toThrow(/^service_url/);
  expect(() => checkServiceUrl(url)).not.toThrow(/password/);
});
