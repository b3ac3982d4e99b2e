import { KubeApiError } from '@rollcall/platform/kube/errors.ts';
import { expect, test } from 'vitest';
import { registrationRefusal } from './registration-refusal.ts';

const NAME_RULE =
  'Invalid value: metadata.name must be spec.serviceName itself where that is a lower-case DNS label (RFC 1123, at most 63 characters)';

/** What the API server answers where it finds these fields invalid. */
function invalid(...causes: readonly { readonly field: string; readonly message?: string }[]): KubeApiError {
  return new KubeApiError(422, { code: 422, reason: 'Invalid', details: { causes } });
}

test.each([
  {
    sentence: 'an instance, by the definition of before, is to be tried again',
    error: invalid({ field: '<nil>', message: NAME_RULE }),
    code: 'STORE_UNAVAILABLE',
  },
  { sentence: 'a URL is wrong', error: invalid({ field: 'spec.url' }), code: 'INVALID_SERVICE_URL' },
  { sentence: 'a name is wrong', error: invalid({ field: 'spec.serviceName' }), code: 'INVALID_SERVICE_NAME' },
  { sentence: 'anything else is wrong', error: invalid({ field: 'spec.weight' }), code: 'INVALID_REQUEST' },
  { sentence: 'what names no field is wrong', error: new KubeApiError(400, {}), code: 'INVALID_REQUEST' },
])('$sentence', ({ error, code }) => {
  expect(registrationRefusal(error)).toMatchObject({ code, cause: error });
});
