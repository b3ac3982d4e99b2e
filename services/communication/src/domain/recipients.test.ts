import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseEmailAddress, parsePhoneNumber, parsePushTarget, pushPlatforms } from './recipients.ts';

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

test.each([
  { text: '082 123 4567', region: 'ZA', e164: '+27821234567', country: 'ZA' },
  { text: '0027821234567', region: 'ZA', e164: '+27821234567', country: 'ZA' },
  { text: '27821234567', region: 'ZA', e164: '+27821234567', country: 'ZA' },
  { text: '+27 (82) 123-4567', region: 'GB', e164: '+27821234567', country: 'ZA' },
  { text: '07400 123456', region: 'GB', e164: '+447400123456', country: 'GB' },
  { text: '(213) 373-4253', region: 'US', e164: '+12133734253', country: 'US' },
] as const)('$text of $region is $e164', ({ text, region, e164, country }) => {
  expect(parsePhoneNumber(text, region)).toEqual({ value: { e164, country } });
});

test.each([
  '',
  '012345',
  '+27821234567, +27821234568',
  '+27821234567 ext. 5',
  'call 082 123 4567',
  'tel:+27821234567',
  '+278212345678901',
  '+27821234567\r\nTo: x',
  '++27821234567',
  '０８２１２３４５６７',
  '0'.repeat(41),
])('%j is no phone number', (text) => {
  expect(parsePhoneNumber(text, 'ZA')).toEqual({ fault: 'must be a phone number, such as +27821234567 or one of ZA' });
});

test.each(['+27114471234', '0800 123 456'])('%j is no mobile phone', (text) => {
  expect(parsePhoneNumber(text, 'ZA')).toEqual({ fault: 'must be the number of a mobile phone' });
});

const keys = {
  p256dh: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
  auth: 'BTBZMqHH6r4Tts7J_aSIgg',
};
const endpoint = 'https://push.example.com/send/abc';

test('tokens of each push service are read', () => {
  const token = 'cJk8:APA91bH_x-y.z0123456789';
  expect(parsePushTarget(token, 'fcm')).toEqual({ value: { platform: 'fcm', token } });
  expect(parsePushTarget('AB'.repeat(32), 'apns')).toEqual({ value: { platform: 'apns', token: 'ab'.repeat(32) } });
  expect(parsePushTarget(JSON.stringify({ endpoint, expirationTime: null, keys }), 'webpush')).toEqual({
    value: { platform: 'webpush', endpoint, ...keys },
  });
});

test.each([
  ['fcm', 'short'],
  ['fcm', `${'a'.repeat(30)}/../x`],
  ['fcm', 'a'.repeat(4097)],
  ['apns', 'ab'.repeat(31)],
  ['apns', `${'ab'.repeat(31)}zz`],
  ['apns', `${'ab'.repeat(32)}\n`],
  ['webpush', 'no JSON'],
  ['webpush', 'null'],
  ['webpush', JSON.stringify({ endpoint })],
  ['webpush', JSON.stringify({ endpoint: 'http://push.example.com/', keys })],
  ['webpush', JSON.stringify({ endpoint: 'https://user:secret@push.example.com/', keys })],
  ['webpush', JSON.stringify({ endpoint, keys: { ...keys, auth: 'AAAA' } })],
  ['webpush', JSON.stringify({ endpoint, keys: { ...keys, p256dh: keys.auth } })],
  ['webpush', JSON.stringify({ endpoint: `${endpoint}${'a'.repeat(4096)}`, keys })],
] as const)('for %s, %j is no token', (platform, token) => {
  expect(parsePushTarget(token, platform)).toHaveProperty('fault');
});

test('no text at all makes reading a token fail', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), fc.constantFrom(...pushPlatforms), (text, platform) => {
      expect(Object.keys(parsePushTarget(text, platform))).toHaveLength(1);
    }),
  );
});
