import { describe, expect, test } from 'vitest';
import { isSameSecret, isSignedWith, isStandardSignedWith, sign, signStandard } from './signatures.ts';

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
    `${header},${header}`,
    'é'.repeat(64),
  ];
  for (const form of forms) expect(isSignedWith('secret', body, form)).toBe(false);
});

test('bytes that are no text can be signed', () => {
  const body = Buffer.from([0xff, 0x00, 0xfe]);
  expect(isSignedWith('k', body, sign('k', body))).toBe(true);
});

test('while secrets are rotated, one of several signatures suffices', () => {
  const body = Buffer.from('{}');
  const [old, next] = [sign('old', body), sign('new', body)];
  for (const header of [`${old} ${next}`, `${next}  ${old}`, `x ${next.replace('sha256=', '')}`]) {
    expect(isSignedWith('new', body, header)).toBe(true);
  }
  expect(isSignedWith('third', body, `${old} ${next}`)).toBe(false);
});

/** Published with the specification's reference implementations. */
const standard = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  message: { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestamp: '1614265330', body: '{"test": 2432232314}' },
  header: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
};

describe('Standard Webhooks', () => {
  const { secret, message, header } = standard;

  test('the signature is the published one', () => {
    expect(signStandard(secret, message)).toBe(header);
    for (const given of [header, `v1,AAAA ${header}`, `v1a,abc ${header} v2,x`, ` ${header} `]) {
      expect(isStandardSignedWith(secret, message, given)).toBe(true);
    }
  });

  test('another message, secret or form is refused', () => {
    for (const other of [{ id: 'msg_2' }, { timestamp: '1614265331' }, { body: '{"test":2432232314}' }]) {
      expect(isStandardSignedWith(secret, { ...message, ...other }, header)).toBe(false);
    }
    expect(isStandardSignedWith(`${secret}BBBB`, message, header)).toBe(false);
    for (const form of [
      '',
      'v1',
      'v1,',
      header.slice(3),
      header.replace('v1', 'v2'),
      header.slice(0, -1),
      `${header}=`,
    ]) {
      expect(isStandardSignedWith(secret, message, form)).toBe(false);
    }
  });

  test('without the prefix, a secret is its base64 where it is long enough for a key, and its text', () => {
    const bare = secret.replace('whsec_', '');
    expect(isStandardSignedWith(bare, message, header)).toBe(true);
    const [decoded = '', text = ''] = signStandard(bare, message).split(' ');
    expect(decoded).toBe(header);
    expect(isStandardSignedWith(bare, message, text)).toBe(true);
    // The key must not be taken from words that happen to be base64, least of all an empty one.
    for (const word of ['abcd', 'secret', 'a']) {
      expect(signStandard(word, message)).toMatch(/^v1,\S{44}$/);
      expect(isStandardSignedWith(word, message, signStandard(`whsec_${word}`, message))).toBe(false);
    }
  });

  test('what follows the prefix and is no base64 is seen as the text that it is', () => {
    const odd = 'whsec_größe!';
    expect(isStandardSignedWith(odd, message, signStandard(odd, message))).toBe(true);
  });
});

test('secrets are the same when every character is', () => {
  expect(isSameSecret('größe', 'größe')).toBe(true);
  for (const other of ['', 'größ', 'grösse', 'größe ']) expect(isSameSecret('größe', other)).toBe(false);
});
