import { createLogger } from '@rollcall/platform/process/log.ts';
import { expect, test } from 'vitest';
import { createShow, maskedErrors } from './masking.ts';

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

test.each([
  [true, 1000],
  [false, 5000],
])('of very many errors the log has the count and some codes (masked: %j)', (areErrorsMasked, count) => {
  let logged = '';
  const show = createShow(areErrorsMasked, createLogger('test', 'warn', { write: (line) => void (logged += line) }));
  const errors = Array.from({ length: 5000 }, (_, at) => ({ extensions: { code: `C${at % 100}` } }));
  const shown = show('users', { errors });
  expect(JSON.parse(logged)).toMatchObject({ codes: Array.from({ length: 20 }, (_, at) => `C${at}`), count: 5000 });
  expect(shown.errors).toHaveLength(count);
});
