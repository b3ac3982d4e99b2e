import { KubeApiError, KubeUnreachableError } from '@rollcall/platform/kube/errors.ts';
import { expect, test } from 'vitest';
import { domainError, mapError } from './errors.ts';

const forbidden = (message: string) => new KubeApiError(403, { reason: 'Forbidden', message });

test.for([
  ['STORE_UNCOUNTED', 503, forbidden('x is forbidden: status unknown for quota: rollcall')],
  ['STORE_FULL', 507, forbidden('x is forbidden: exceeded quota: rollcall, requested: 1')],
  ['STORE_UNAVAILABLE', 503, new KubeUnreachableError('no connection')],
] as const)('%s (%i) is what the API server means', ([code, status, error]) => {
  expect(domainError(error)?.code).toBe(code);
  expect(mapError(error)?.statusCode).toBe(status);
});

test('what else the API server forbids is no fault of the store', () => {
  expect(domainError(forbidden('x is forbidden: User "y" cannot create'))).toBeUndefined();
});
