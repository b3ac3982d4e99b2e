import { expect, test } from 'vitest';
import { isUnknownAddress, statusCodeOf } from './smtp-status.ts';

test.each([
  ['550 5.1.1 <ana@example.com>: Recipient address rejected', '5.1.1'],
  ['550-5.1.1 The email account does not exist', '5.1.1'],
  ['421 4.7.0 Try again later', '4.7.0'],
  ['5.2.2', '5.2.2'],
  ['554 from 10.5.1.1 refused', undefined],
  ['550 no such user', undefined],
  ['version 3.5.1', undefined],
  ['', undefined],
])('the status code of %j is %s', (text, code) => {
  expect(statusCodeOf(text)).toBe(code);
});

test.each(['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10'])('%s says that the address is not there', (code) => {
  expect(isUnknownAddress(code)).toBe(true);
});

// 5.1.7 and 5.1.8 are of the sender's address, not of the recipient's.
test.each(['4.1.1', '5.2.2', '4.2.2', '5.7.1', '5.1.7', '5.1.8', '5.1.11', '5.0.0', undefined])(
  '%s says nothing of the address',
  (code) => {
    expect(isUnknownAddress(code)).toBe(false);
  },
);
