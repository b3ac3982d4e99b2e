import { expect, test } from 'vitest';
import { readErrors } from './errors.ts';

test('of very many errors of an answer the first are read', () => {
  const errors = Array.from({ length: 5000 }, (_, at) => ({ message: `${at}` }));
  const read = readErrors(errors, 'users');
  expect([read.length, read.at(-1)?.message]).toEqual([1000, '999']);
});
