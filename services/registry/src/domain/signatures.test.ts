import { expect, test } from 'vitest';
import { isSameSecret, isSignedWith, sign } from './signatures.ts';

/** RFC 4231, test cases 2 and 6. */
const vectors = [
  {
    key: 'Jefe',
    body: 'what do ya want for nothing?',
    hex: '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  },
  {
    // Published by GitHub, "Validating webhook deliveries".
    key: "It's a Secret to Everybody",
    body: 'Hello, World!',
    hex: '757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
  },
];

test.each(vectors)('the signature of $body is the published one', ({ key, body, hex }) => {
  expect(sign(key, body)).toBe(`sha256=${hex}`);
  for (const header of [`sha256=${hex}`, hex, hex.toUpperCase(), ` ${hex} `]) {
    expect(isSignedWith(key, Buffer.from(body), header)).toBe(true);
  }
});

test('another body, secret or form is refused', () => {
  const body = Buffer.from('{"a":1}');
  const header = sign('secret', body);
  expect(isSignedWith('secret', Buffer.from('{"a": 1}'), header)).toBe(false);
  expect(isSignedWith('Secret', body, header)).toBe(false);
  const forms = [
    '',
    'sha256=',
    'sha256=00',
    header.slice(0, -1),
    `${header}0`,
    header.replace('sha256', 'sha1'),
    `${header}, ${header}`,
    'é'.repeat(64),
  ];
  for (const form of forms) expect(isSignedWith('secret', body, form)).toBe(false);
});

test('bytes that are no text can be signed', () => {
  const body = Buffer.from([0xff, 0x00, 0xfe]);
  expect(isSignedWith('k', body, sign('k', body))).toBe(true);
});

test('secrets are the same when every character is', () => {
  expect(isSameSecret('größe', 'größe')).toBe(true);
  for (const other of ['', 'größ', 'grösse', 'größe ']) expect(isSameSecret('größe', other)).toBe(false);
});
