import { expect, test } from 'vitest';
import { parseHealthRequest } from './health.ts';

function framed(message: readonly number[] | Buffer, compressed = 0): Buffer {
  const head = Buffer.from([compressed, 0, 0, 0, 0]);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, Buffer.from(message)]);
}

test.each([
  ['no field', framed([]), ''],
  ['an empty name', framed([0x0a, 0]), ''],
  ['a name', framed([0x0a, 4, ...Buffer.from('shop')]), 'shop'],
])('%s is a request', (_what, message, service) => {
  expect(parseHealthRequest(message)).toBe(service);
});

test.each([
  ['nothing', Buffer.alloc(0)],
  ['half of a prefix', Buffer.from([0, 0, 0])],
  ['a message that is cut off', framed([0x0a, 4, 0x61])],
  ['a compressed message', framed([0x0a, 0], 1)],
  ['another field', framed([0x12, 0])],
  ['two messages', Buffer.concat([framed([]), framed([])])],
])('%s is none', (_what, message) => {
  expect(parseHealthRequest(message)).toBeUndefined();
});
