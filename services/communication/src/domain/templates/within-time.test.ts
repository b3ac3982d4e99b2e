import { expect, test } from 'vitest';
import { TooLongError, withinTime } from './within-time.ts';

test('work gives its value, or its own error', () => {
  expect(withinTime(1000, () => withinTime(500, () => 7) + 1)).toBe(8);
  expect(() => withinTime(1000, () => JSON.parse('{'))).toThrow(SyntaxError);
});

test('work that has to wait for others has its time all the same', () => {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  let begun = 0;
  const waits = () => {
    begun += 1;
    // Longer than the limit, and of no time of the processor, as where others have it.
    Atomics.wait(cell, 0, 0, 600);
    return 'done';
  };
  expect(withinTime(500, waits)).toBe('done');
  expect(begun).toBe(2);
});

test('work that waits for ever is cut off', () => {
  const cell = new Int32Array(new SharedArrayBuffer(4));
  expect(() => withinTime(50, () => Atomics.wait(cell, 0, 0))).toThrow(TooLongError);
});

const endless = () => {
  for (;;) 'a'.repeat(100);
};

test('work that does not end is cut off, and what comes next is done', () => {
  const startedMs = performance.now();
  expect(() => withinTime(50, endless)).toThrow(TooLongError);
  expect(performance.now() - startedMs).toBeLessThan(20_000);
  expect(withinTime(50, () => 'next')).toBe('next');
});
