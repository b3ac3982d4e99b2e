import { expect, test } from 'vitest';
import { maskedErrors } from './masking.ts';

test('of an error its place and its code are shown, and none of its words', () => {
  const errors = [
    { message: 'anna@example.org is not known', path: ['user', 0], extensions: { code: 'NOT_FOUND', mail: 'anna' } },
  ];
  expect(maskedErrors(errors)).toEqual([
    { message: 'The service could not answer this field', path: ['user', 0], extensions: { code: 'NOT_FOUND' } },
  ]);
});

test.each([
  { error: undefined },
  { error: 'text' },
  { error: { path: 'no list' } },
  { error: { extensions: null } },
  { error: { extensions: { code: 'select * from users' } } },
  { error: { extensions: { code: 7 } } },
])('$error becomes an error without a code of its own', ({ error }) => {
  expect(maskedErrors([error])).toEqual([
    { message: 'The service could not answer this field', extensions: { code: 'SUBGRAPH_ERROR' } },
  ]);
});
