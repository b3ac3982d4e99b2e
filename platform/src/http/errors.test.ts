import { expect, test } from 'vitest';
import { type ErrorKind, ServiceError } from '../errors.ts';
import { grpcStatusNameOf } from '../grpc/status.ts';
import { answerOf, codedErrorBody, plainErrorBody } from './errors.ts';

const missing: ErrorKind = { status: 404, error: 'Not found', message: 'There is none; make one' };

test('the answer to an error has what its kind says, where the error says nothing else', () => {
  const answer = answerOf(new ServiceError('MISSING', missing));
  expect(answer).toMatchObject({ statusCode: 404, headers: {} });
  expect(plainErrorBody(answer)).toEqual({ error: 'Not found', message: 'There is none; make one' });
  const exact = answerOf(new ServiceError('MISSING', missing, { message: 'No job 7', details: { job: 7 } }));
  expect(codedErrorBody(exact)).toEqual({ error: { code: 'MISSING', message: 'No job 7', details: { job: 7 } } });
});

test.each([
  { name: 'a challenge with 401', kind: { status: 401 }, headers: { 'www-authenticate': 'Bearer' } },
  { name: 'when to come back with 429', kind: { status: 429 }, headers: { 'retry-after': '1' } },
  { name: 'when to come back with 503', kind: { status: 503 }, headers: { 'retry-after': '1' } },
  { name: 'when to come back where it passes', kind: { status: 409, passes: true }, headers: { 'retry-after': '1' } },
  { name: 'nothing with 409', kind: { status: 409 }, headers: {} },
])('the answer has $name', ({ kind, headers }) => {
  expect(answerOf(new ServiceError('SOME', { ...kind, message: 'it failed' })).headers).toEqual(headers);
});

test('what the error itself says of its header fields holds', () => {
  const busy = new ServiceError('BUSY', { status: 503, message: 'busy' }, { headers: { 'retry-after': '7' } });
  expect(answerOf(busy).headers).toEqual({ 'retry-after': '7' });
});

test.each([
  [missing, 'NOT_FOUND' as const],
  [{ ...missing, grpc: 'UNIMPLEMENTED' as const }, 'UNIMPLEMENTED' as const],
  [{ ...missing, status: 504 }, 'DEADLINE_EXCEEDED' as const],
  [{ ...missing, status: 418 }, 'INTERNAL' as const],
])('a call ends with the status of its kind: %j', (kind, status) => {
  expect(grpcStatusNameOf(kind)).toBe(status);
});
