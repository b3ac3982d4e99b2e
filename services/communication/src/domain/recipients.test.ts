import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parsePhoneNumber, parsePushTarget, pushPlatforms, soughtRecipient } from './recipients.ts';

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

test.each([
  ['082 123 4567', '+27821234567'],
  ['+27 82 123 4567', '+27821234567'],
  ['Ana@EXAMPLE.com', 'Ana@example.com'],
  ['ana@bücher.example', 'ana@xn--bcher-kva.example'],
  ['dGhpcyBpcyBhIHRva2Vu', 'dGhpcyBpcyBhIHRva2Vu'],
])('%s is looked for as %s', (text, recipient) => {
  expect(soughtRecipient(text, 'ZA')).toBe(recipient);
});
