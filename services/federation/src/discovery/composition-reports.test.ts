import { expect, test } from 'vitest';
import { reportOf } from './composition-reports.ts';

const standing = { goneAt: null, failure: null, errors: [], sdl: 't', isLeftOut: false };
const clash = { code: 'FIELD_TYPE_MISMATCH', message: 'Two\ntypes\u202eof `a`' };

test.each([
  [{}, { status: 'composed', message: 'Its newest schema is in the graph' }],
  [{ errors: [clash] }, { status: 'held', message: 'FIELD_TYPE_MISMATCH: Two types of `a`' }],
  [{ errors: [clash, clash, clash] }, { status: 'held', message: 'FIELD_TYPE_MISMATCH: Two types of `a`; and 2 more' }],
  [
    { failure: { code: 'INTROSPECTION_FAILED' as const, message: 'no answer' }, errors: [clash] },
    { status: 'unreachable', message: 'no answer' },
  ],
  [{ sdl: null }, { status: 'unreachable', message: 'Its schema has not been read yet' }],
  [{ isLeftOut: true }, { status: 'removed', message: 'Somebody took it out of the graph' }],
  [{ goneAt: new Date(0) }, undefined],
])('of %j the registry is told', (more, report) => {
  expect(reportOf({ ...standing, ...more })).toEqual(report);
});

test('a long message is cut, and not within a character', () => {
  const errors = [{ code: 'X', message: `${'x'.repeat(996)}😀` }];
  const { message = '' } = reportOf({ ...standing, errors }) ?? {};
  expect(message).toHaveLength(1000);
  expect(message.endsWith('x\ufffd')).toBe(true);
});
