import { array, assert, integer, property } from 'fast-check';
import { expect, test } from 'vitest';
import { KeptData } from './kept-data.ts';

test('what is kept comes out as it went in, whatever is read between', () => {
  assert(
    property(array(integer({ min: -1, max: 6000 }), { maxLength: 60 }), (steps) => {
      const kept = new KeptData();
      const pushed: Buffer[] = [];
      const read: Buffer[] = [];
      for (const [index, bytes] of steps.entries()) {
        const piece = Buffer.alloc(Math.max(0, bytes), index + 1);
        const first = bytes < 0 ? kept.shift() : undefined;
        if (first !== undefined) read.push(first);
        if (bytes > 0) pushed.push(piece);
        if (bytes > 0) kept.push(piece);
      }
      expect(kept.length).toBe(Buffer.concat(pushed).length - Buffer.concat(read).length);
      for (let piece = kept.shift(); piece !== undefined; piece = kept.shift()) read.push(piece);
      expect(Buffer.concat(read).equals(Buffer.concat(pushed))).toBe(true);
    }),
  );
});

test('a window of single bytes takes little more room than its bytes', () => {
  const kept = new KeptData();
  const large = Buffer.alloc(65_536);
  for (let index = 0; index < large.length; index += 1) kept.push(large.subarray(index, index + 1));
  const rooms = [];
  for (let piece = kept.shift(); piece !== undefined; piece = kept.shift()) rooms.push(piece.buffer.byteLength);
  expect(rooms.reduce((sum, bytes) => sum + bytes, 0)).toBe(65_536);
});
