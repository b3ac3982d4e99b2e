import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseEmailAddress } from './mail-address.ts';

test.each([
  ['ana@example.com', 'ana@example.com'],
  ['Ana.Maria+news@Example.COM', 'Ana.Maria+news@example.com'],
  ["o'brien@mail.example.co.za", "o'brien@mail.example.co.za"],
  ['ana@söhne.example', 'ana@xn--shne-5qa.example'],
  ['ana@xn--shne-5qa.example', 'ana@xn--shne-5qa.example'],
  ['ana@例え.テスト', 'ana@xn--r8jz45g.xn--zckzah'],
  [`${'a'.repeat(64)}@example.com`, `${'a'.repeat(64)}@example.com`],
])('%j is the mail address %s', (text, address) => {
  expect(parseEmailAddress(text)).toEqual({ value: address });
});

test.each([
  '',
  'ana',
  '@example.com',
  'ana@',
  'ana@localhost',
  'ana@127.0.0.1',
  'ana@1.2',
  'ana@[127.0.0.1]',
  'ana@example.com.',
  'ana@exa_mple.com',
  'ana@-example.com',
  'ana@example..com',
  'ana@example.com/x',
  'ana@ex%61mple.com',
  'a@x.example, b@y.example',
  'a@x.example;b@y.example',
  'a@x.example b@y.example',
  'a@b@x.example',
  'Ana <ana@example.com>',
  '<ana@example.com>',
  'ana(comment)@example.com',
  'ana@example.com (comment)',
  'group: ana@example.com;',
  '"ana maria"@example.com',
  '.ana@example.com',
  'ana..maria@example.com',
  'ána@example.com',
  ' ana@example.com',
  'ana@example.com\n',
  'a@x.example\r\nBcc: evil@y.example',
  'a\u0000@x.example',
  'ana@exa\u00admple.com',
  'ana@exa\u200bmple.com',
  `${'a'.repeat(65)}@example.com`,
  `ana@${'a.'.repeat(130)}example`,
  `ana@${'a'.repeat(64)}.example`,
  `ana@${'ö'.repeat(60)}.example`,
])('%j is no mail address', (text) => {
  expect(parseEmailAddress(text)).toHaveProperty('fault');
});

test('whatever is read as a mail address has one @ and nothing that ends a header or begins another address', () => {
  const parts = fc.array(
    fc.constantFrom(
      'a',
      'B',
      '@',
      '.',
      ',',
      '\r',
      '\n',
      '\0',
      '"',
      '<',
      '(',
      ' ',
      'ö',
      '。',
      '＠',
      '/',
      '%',
      '％',
      '？',
      'example.com',
    ),
  );
  fc.assert(
    fc.property(parts, (chosen) => {
      const parsed = parseEmailAddress(chosen.join(''));
      expect('value' in parsed ? parsed.value : 'a@b.c').toMatch(/^[\w!#$%&'*+/=?^`{|}~.-]+@[a-z\d.-]+$/);
    }),
    { numRuns: 2000 },
  );
});
