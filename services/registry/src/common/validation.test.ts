import { expect, test } from 'vitest';
import { checkServiceName, checkServiceUrl, isServiceName } from './validation.ts';

test('a legal name and a legal URL pass', () => {
  expect(isServiceName('shop')).toBe(true);
  expect(() => checkServiceName('shop')).not.toThrow();
  expect(() => checkServiceUrl('http://shop')).not.toThrow();
});

test('others are refused under the contract’s names of the fields', () => {
  expect(isServiceName('a b')).toBe(false);
  expect(() => checkServiceName('a b')).toThrow(
    expect.objectContaining({ code: 'INVALID_SERVICE_NAME', message: expect.stringMatching(/^service_name must not/) }),
  );
  expect(() => checkServiceUrl('ftp://shop')).toThrow(
    expect.objectContaining({ code: 'INVALID_SERVICE_URL', message: expect.stringMatching(/^service_url must be/) }),
  );
});
