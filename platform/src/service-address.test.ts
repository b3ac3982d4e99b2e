import {
  array,
  assert,
  constantFrom,
  domain,
  ipV4,
  ipV6,
  oneof,
  property,
  string,
  stringMatching,
  tuple,
} from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  httpUrlFault,
  httpUrlRules,
  serviceNameFault,
  serviceNameRules,
  serviceUrlFault,
  serviceUrlRules,
} from './service-address.ts';

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
  ...['\u00ad', '\u061c', '\u200b', '\u202e', '\u2060', '\u2066', '\u{e0041}'].map((sign) => [
    `a${sign}b`,
    'invisible',
  ]),
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
  'http://3f2a9c1b:80',
  'http://a_b.c-d.:8080',
  'http://xn--gre-6ka8i/größe',
  'http://[::ffff:1.2.3.4]',
  'http://[1:2:3:4:5:6::8]',
  'http://[1:2:3:4:5:6:7::]',
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
  ['http://a\\b', 'Punycode'],
  ['http://a%41b/', 'Punycode'],
  ['http://größe', 'Punycode'],
  ['http://a..b', 'Punycode'],
  ['http://1.2.3', 'Punycode'],
  ['http://2130706433', 'Punycode'],
  ['http://0x7f000001', 'Punycode'],
  ['http://127.0.0.01', 'Punycode'],
  ['http://[::1].', 'Punycode'],
  ['http://[1::2::3]', 'Punycode'],
  ['http://[1:2:3:4:5:6:7:8::]', 'Punycode'],
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

test.each(['http://shop/a/../b', 'http://shop/.', 'http://shop/%2e%2E/x', 'http://shop/.%2e', 'http://shop/x/%2E'])(
  'a service may not be at %j, where calls would go elsewhere',
  (url) => {
    expect(serviceUrlFault(url)).toContain('segments');
  },
);

test.each(['http://shop/..x', 'http://shop/.well-known/x', 'http://shop/...', 'http://shop/%2e%2ea'])(
  'a service may be at %j, whose path has no dot segment',
  (url) => {
    expect(serviceUrlFault(url)).toBeUndefined();
  },
);

test.each(['http://shop/%', 'http://shop/%z1', 'http://shop/%1', 'http://shop/%%41'])(
  'a service may not be at %j',
  (url) => {
    expect(serviceUrlFault(url)).toContain('hexadecimal');
  },
);

describe.each([
  { what: 'name', fault: serviceNameFault, rules: serviceNameRules },
  { what: 'URL', fault: httpUrlFault, rules: httpUrlRules },
  { what: 'base URL', fault: serviceUrlFault, rules: serviceUrlRules },
])('a $what is legal exactly where the JSON Schema says so', ({ fault, rules }) => {
  const pattern = new RegExp(rules.pattern, 'u');
  const fits = (text: string) => pattern.test(text) && Array.from(text).length <= rules.maxLength;
  const odd = constantFrom(
    'http://',
    '://',
    '[::',
    ']',
    '.',
    ':',
    ':0',
    '%41',
    '%2e',
    '%',
    '@',
    '/',
    '?',
    '#',
    '\\',
    '*',
    ';',
    '0x1',
    '1',
    '\u00a0',
    'é',
    '\ufffd',
    '\ufeff',
    '\u061c',
    '\u200b',
    '\u200d',
    '\u2066',
    '\u{e0020}',
    '\u2028',
    '\n',
  );
  const pieces = array(oneof(odd, string({ unit: 'binary', maxLength: 3 }), domain(), ipV4(), ipV6()), {
    maxLength: 6,
  });

  test.each([
    ['what it describes', stringMatching(new RegExp(rules.pattern.replace(/^\^\(\?!.*?\$\)\)/, '^'), 'u'))],
    ['pieces', pieces.map((parts) => parts.join(''))],
    ['pieces of a URL', pieces.map((parts) => `http://${parts.join('')}`)],
    [
      'any length',
      tuple(pieces, string({ unit: 'grapheme', minLength: 200, maxLength: 300 })).map(
        ([parts, rest]) => parts.join('') + rest,
      ),
    ],
  ])('%s', (_name, texts) => {
    assert(
      property(texts, (text) => {
        expect(fault(text) === undefined).toBe(fits(text));
      }),
      { numRuns: 3000 },
    );
  });

  test('characters beyond the Basic Multilingual Plane count once', () => {
    const start = rules === serviceNameRules ? '' : 'http://a/';
    expect(fault(start + '😀'.repeat(rules.maxLength - start.length))).toBeUndefined();
    expect(fault(start + '😀'.repeat(rules.maxLength - start.length + 1))).toContain('at most');
  });
});
