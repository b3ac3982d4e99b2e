import { expect, test } from 'vitest';
import { TooLongError, withinTime } from './within-time.ts';

test('work gives its value, or its own error', () => {
  expect(withinTime(1000, () => withinTime(500, () => 7) + 1)).toBe(8);
  expect(() => withinTime(1000, () => JSON.parse('{'))).toThrow(SyntaxError);
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
