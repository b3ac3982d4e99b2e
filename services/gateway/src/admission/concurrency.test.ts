import { expect, test } from 'vitest';
import { createConcurrency } from './concurrency.ts';

test('each has so many at once, and another one when one is over', () => {
  const concurrency = createConcurrency(2);
  const leave = concurrency.enter('a');
  expect(concurrency.enter('a')).toBeTypeOf('function');
  expect(concurrency.enter('a')).toBeUndefined();
  expect(concurrency.enter('b')).toBeTypeOf('function');
  leave?.();
  expect(concurrency.enter('a')).toBeTypeOf('function');
  expect(concurrency.enter('a')).toBeUndefined();
});
