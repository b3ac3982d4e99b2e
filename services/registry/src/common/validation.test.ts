import { errorMessage } from '@rollcall/platform/errors.ts';
import { addressRules } from '@rollcall/platform/outbound/address-rules.ts';
import { expect, test } from 'vitest';
import { checkReport, checkServiceName, checkServiceUrl, isServiceName } from './validation.ts';

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
  'http://0.0.0.0',
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

const nested = (depth: number): object => JSON.parse('{"a":'.repeat(depth) + '1' + '}'.repeat(depth)) as object;

test.each([
  ['a name of 256 characters', { ['😀'.repeat(256)]: 1 }, /^$/],
  ['a longer name', { ['k'.repeat(257)]: 1 }, /256/],
  ['a longer name deep within', { a: [{ ['k'.repeat(257)]: 1 }] }, /256/],
  ['as deep as may be', nested(32), /^$/],
  ['deeper', nested(33), /32 deep/],
  ['without end', nested(20_000), /32 deep/],
  ['a control character deep within', { a: [{ b: 'x\u0007' }] }, /control/],
  ['a control character in a name', { a: [{ '\u202e': 1 }] }, /control/],
  ['a version that is none', { version: 'a/b' }, /version/],
  ['a version that is no text', { version: { a: 1 } }, /^$/],
])('details with %s', (_what, details, reason) => {
  const at = new Date(0);
  let message = '';
  try {
    checkReport({ kind: 'health', word: 'ok', at, details: { ...details } });
  } catch (error) {
    message = errorMessage(error);
  }
  expect(message).toMatch(reason);
});
