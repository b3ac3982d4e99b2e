import { status } from '@grpc/grpc-js';
import { KubeUnreachableError } from '@rollcall/platform/kube/errors.ts';
import { expect, test } from 'vitest';
import { RegistryError } from '../common/errors.ts';
import { statusOfError } from './errors.ts';

test.each([
  ['the API server is away', new KubeUnreachableError('gone')],
  ['there are too many streams', new RegistryError('TOO_MANY_STREAMS')],
])('where %s, callers learn when to come back', (_what, error) => {
  const failure = statusOfError(error);
  expect(failure?.code).toBe(status.UNAVAILABLE);
  expect(failure?.metadata?.get('grpc-retry-pushback-ms')).toEqual(['1000']);
});

test('an error that nobody foresaw is none of these', () => {
  expect(statusOfError(new Error('x'))).toBeUndefined();
});
