import { expect, test } from 'vitest';
import { urlNotAllowed } from './errors.ts';

test.each([
  ['public', /of https, and on the internet/],
  ['cluster', /private network/],
  ['loopback', /on the machine of the service/],
] as const)('who may go to %s addresses alone is told so', (addresses, where) => {
  expect(urlNotAllowed(addresses)).toMatchObject({ code: 'URL_NOT_ALLOWED', message: expect.stringMatching(where) });
});

test('where only this machine is allowed, nobody is told of https', () => {
  expect(urlNotAllowed('loopback').message).not.toMatch(/https|internet/);
});
