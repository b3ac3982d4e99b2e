import { array, assert, constant, constantFrom, integer, oneof, property, string, tuple } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CompressionError, HpackDecoder } from './decoder.ts';
import { HpackEncoder } from './encoder.ts';

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');
const fieldsOf = (text: string): string[] => text.split('\n').flatMap((line) => line.trim().split(/(?<=.): /));

/** RFC 7541, appendix C: blocks of one connection after the other, and what they say. */
const EXAMPLES: Record<string, readonly (readonly [block: string, fields: string])[]> = {
  'requests without Huffman coding (C.3)': [
    [
      '8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d',
      ':method: GET\n:scheme: http\n:path: /\n:authority: www.example.com',
    ],
    [
      '8286 84be 5808 6e6f 2d63 6163 6865',
      ':method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\ncache-control: no-cache',
    ],
    [
      '8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65',
      ':method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\ncustom-key: custom-value',
    ],
  ],
  'requests with Huffman coding (C.4)': [
    [
      '8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff',
      ':method: GET\n:scheme: http\n:path: /\n:authority: www.example.com',
    ],
    [
      '8286 84be 5886 a8eb 1064 9cbf',
      ':method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\ncache-control: no-cache',
    ],
    [
      '8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf',
      ':method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\ncustom-key: custom-value',
    ],
  ],
  'responses with Huffman coding, in a table of 256 bytes (C.6)': [
    [
      `3fe1 01 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b
       97c8 e9ae 82ae 43d3`.replaceAll('\n', ''),
      ':status: 302\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\nlocation: https://www.example.com',
    ],
    [
      '4883 640e ffc1 c0bf',
      ':status: 307\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\nlocation: https://www.example.com',
    ],
    [
      `88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960
       d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07`.replaceAll('\n', ''),
      `:status: 200\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:22 GMT\nlocation: https://www.example.com
       content-encoding: gzip\nset-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1`,
    ],
  ],
};

describe('the examples of the RFC', () => {
  test.each(Object.entries(EXAMPLES))('%s', (_name, blocks) => {
    const decoder = new HpackDecoder(16_384);
    for (const [block, fields] of blocks) {
      expect(decoder.decode(hex(block))).toEqual({ fields: fieldsOf(fields), fault: undefined });
    }
  });
});

test.each([
  ['an index of 0', '80'],
  ['an index of nothing', 'be'],
  ['a name of nothing', '7e 00'],
  ['a number without an end', 'ff ff ff ff ff ff 0f'],
  ['a string that is cut short', '40 05 61'],
  ['a length that is cut short', '40'],
  ['a string that ends within a code', '40 81 00 00'],
  ['a string whose padding has zeros', '40 01 61 81 18'],
  ['a string with the end of one in it', '40 01 61 84 ff ff ff ff'],
  ['a string with a byte of padding', '40 01 61 82 1f ff'],
  ['a table that is larger than agreed', '3f e2 1f'],
  ['a table that is resized behind a field', '82 20'],
])('what cannot be read: %s', (_what, block) => {
  expect(() => new HpackDecoder(16_384).decode(hex(block))).toThrow(CompressionError);
});

const literal = (name: string, value: string): Buffer =>
  Buffer.concat([Buffer.from([0x40, name.length]), Buffer.from(name), Buffer.from([value.length]), Buffer.from(value)]);

test.each([
  ['a name in capitals', 'Date', 'now'],
  ['a name with a space', 'my date', 'now'],
  ['no name', '', 'now'],
  ['a value of two lines', 'date', 'now\r\nset-cookie: a=b'],
  ['a value with a zero', 'date', 'n\0w'],
])('fields that no message may have: %s, also when they are named again', (_what, name, value) => {
  const decoder = new HpackDecoder(16_384);
  expect(decoder.decode(literal(name, value)).fault).toBe('malformed');
  expect(decoder.decode(hex('be')).fault).toBe('malformed');
  expect(decoder.decode(hex('82'))).toEqual({ fields: [':method', 'GET'], fault: undefined });
});

test('fields over the limit are left out, and the table goes on', () => {
  const decoder = new HpackDecoder(150);
  expect(decoder.decode(literal('one', 'x'.repeat(100))).fault).toBeUndefined();
  expect(decoder.decode(Buffer.concat([hex('be'), literal('two', 'y')])).fault).toBe('too large');
  expect(decoder.decode(hex('be')).fields).toEqual(['two', 'y']);
});

const name = oneof(
  constantFrom(':path', 'te', 'content-type', 'grpc-timeout', 'x-a', 'x-b'),
  string({ minLength: 1, unit: constantFrom('a', 'z', '-', '0') }),
);
const value = oneof(
  constantFrom('', '/', 'trailers', 'application/grpc'),
  string({ maxLength: 300, unit: constantFrom('a', 'é', ' ', '~') }),
  constant('x'.repeat(3500)),
);
const block = array(tuple(name, value), { maxLength: 12 });

test('whatever is written is read, also when the reader asks for tables of other sizes', () => {
  const step = oneof(block, integer({ min: 0, max: 8192 }));
  assert(
    property(array(step, { maxLength: 30 }), (steps) => {
      const encoder = new HpackEncoder();
      const decoder = new HpackDecoder(Number.POSITIVE_INFINITY);
      const read: string[][] = [];
      for (const one of steps) {
        if (typeof one === 'number') encoder.resize(one);
        else read.push(decoder.decode(encoder.encode(one.flat())).fields);
      }
      expect(read).toEqual(steps.filter((one) => typeof one !== 'number').map((fields) => fields.flat()));
    }),
  );
});

const identityOf = (caller: string): string[] => ['x-rollcall-identity', caller.repeat(700)];

test('what comes again is named by one byte each', () => {
  const encoder = new HpackEncoder();
  const fields = [':method', 'POST', ':path', '/shop.v1.Shop/Buy', ...identityOf('a')];
  const lengths = [1, 2, 3].map(() => encoder.encode(fields).length);
  expect(lengths[0]).toBeGreaterThan(700);
  expect(lengths[1]).toBeGreaterThan(700);
  expect(lengths[2]).toBe(3);
});

test('large values of many callers in turn drive out nothing', () => {
  const encoder = new HpackEncoder();
  const path = [':path', '/shop.v1.Shop/Buy'];
  for (const caller of 'abcdefghij') encoder.encode([...path, ...identityOf(caller)]);
  expect(encoder.encode(path)).toHaveLength(1);
});
