import { expect, test } from 'vitest';
import { httpUrlFault, serviceNameFault, serviceUrlFault } from './service-address.ts';

test.each([
  'shop',
  'Shop',
  'a',
  'größe-日本',
  'a.b_c',
  'x'.repeat(253),
  'emoji-😀',
  '-',
  '_proto_',
  '__proto__',
  '...',
  '.a',
  '..a',
  '%2e',
  '%2F',
  '?',
  '#',
  ';',
])('the name %j is legal', (name) => {
  expect(serviceNameFault(name)).toBeUndefined();
});

test.each([
  ['', 'empty'],
  ['a:b', "':'"],
  [':', "':'"],
  ['a b', 'white space'],
  ['a\tb', 'white space'],
  ['a\nb', 'white space'],
  ['a\u0000', 'control characters'],
  ['a\u00a0b', 'white space'],
  ['a\u2028', 'white space'],
  ['\ud800', 'surrogates'],
  ['*', 'all services'],
  ['.', "'..'"],
  ['..', "'..'"],
  ['..;x', "'..'"],
  ['.;', "'..'"],
  ['a/b', "'/'"],
  ['../a', "'/'"],
  ['a\\b', 'backslash'],
  ['a\ufffdb', 'decoded'],
  ['x'.repeat(254), '253'],
  ['x'.repeat(10_000), '253'],
])('the name %j is refused with the reason: %s', (name, reason) => {
  expect(serviceNameFault(name)).toContain(reason);
});

test.each([
  'http://shop',
  'https://shop.example:8443/base?x=1',
  'http://127.0.0.1:3000',
  'http://[::1]:80/',
  'HTTP://SHOP',
  'http://a/@b',
  `http://shop/${'x'.repeat(2048 - 12)}`,
])('the URL %j is legal', (url) => {
  expect(httpUrlFault(url)).toBeUndefined();
});

test.each([
  ['', 'empty'],
  ['/relative', 'absolute'],
  ['shop.example', 'absolute'],
  ['//shop.example', 'absolute'],
  ['http://', 'absolute'],
  ['http:///path', 'absolute'],
  ['http:shop', 'absolute'],
  ['javascript:alert(1)', 'absolute'],
  ['ftp://shop', 'absolute'],
  ['http://user:password@shop', 'credentials'],
  ['http://user@shop', 'credentials'],
  ['http://@shop', 'credentials'],
  ['http://sh op', 'white space'],
  ['http://shop\n', 'white space'],
  ['http://shop/\udfff', 'surrogates'],
  ['http://shop:99999', 'absolute'],
  ['http://shop:0', 'port 0'],
  ['http://shop:000/base', 'port 0'],
  ['http://a\\b', 'backslash'],
  ['http://a%41b/', 'percent sign'],
  [`http://shop/${'x'.repeat(2048)}`, '2048'],
])('the URL %j is refused with the reason (%s), without being repeated', (url, reason) => {
  expect(httpUrlFault(url)).toContain(reason);
  expect(httpUrlFault(url)).not.toContain('password');
});

test.each(['http://shop', 'https://shop:8443/base', 'http://[::1]:80/', 'http://shop/a%3Fb%23c'])(
  'a service may be at %j',
  (url) => {
    expect(serviceUrlFault(url)).toBeUndefined();
  },
);

test.each(['http://shop?', 'http://shop/base?x=1', 'http://shop#', 'http://shop/#top', 'http://shop?x#y'])(
  'a service may not be at %j',
  (url) => {
    expect(serviceUrlFault(url)).toContain('query or a fragment');
  },
);
