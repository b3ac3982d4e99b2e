import { addressRules } from '@rollcall/platform/outbound/address-rules.ts';
import { expect, test } from 'vitest';
import { checkServiceName, checkServiceUrl, isServiceName } from './validation.ts';

test('a legal name and a legal URL pass', () => {
  expect(isServiceName('shop')).toBe(true);
  expect(() => checkServiceName('shop')).not.toThrow();
  expect(() => checkServiceUrl('http://shop', addressRules.cluster)).not.toThrow();
});

test('others are refused under the contract’s names of the fields', () => {
  expect(isServiceName('a b')).toBe(false);
  expect(() => checkServiceName('a b')).toThrow(
    expect.objectContaining({ code: 'INVALID_SERVICE_NAME', message: expect.stringMatching(/^service_name must not/) }),
  );
  expect(() => checkServiceUrl('ftp://shop', addressRules.cluster)).toThrow(
    expect.objectContaining({ code: 'INVALID_SERVICE_URL', message: expect.stringMatching(/^service_url must be/) }),
  );
});

test.each([
  'http://127.0.0.1:80',
  'http://127.1/base',
  'http://2130706433',
  'http://0x7f.1',
  'http://0',
  'http://169.254.169.254/latest',
  'http://[::1]:8080',
  'http://[fe80::1]',
  'http://[::ffff:127.0.0.1]',
])('%s is an address at which no service may be', (url) => {
  expect(() => checkServiceUrl(url, addressRules.cluster)).toThrow(
    expect.objectContaining({
      code: 'INVALID_SERVICE_URL',
      message: expect.stringMatching(/^service_url must not have/),
    }),
  );
  expect(() => checkServiceUrl(url, addressRules.any)).not.toThrow();
});

test.each(['http://10.1.2.3:80', 'http://[fd00::1]', 'http://192.0.1.1', 'http://127.0.0.1.example.com'])(
  '%s may be registered',
  (url) => expect(() => checkServiceUrl(url, addressRules.cluster)).not.toThrow(),
);
