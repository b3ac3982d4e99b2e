import { expect, test } from 'vitest';
import { shownPath, shownUpstreamPath } from './secret-paths.ts';

test.each([
  ['/pay/tok_3nJ', '/pay/*'],
  ['/pay/tok/confirm?ref=1', '/pay/*'],
  ['/unsubscribe/abc', '/unsubscribe/*'],
  ['/api/v1/communication/notifications/bulksms/s3cret', '/api/v1/communication/notifications/*'],
  ['/api/v1/payment/notifications/payfast', '/api/v1/payment/notifications/*'],
  ['/api/v1/communication/suppressions/ana@example.com', '/api/v1/communication/suppressions/*'],
  ['/api/v1/communication/devices/tok?x=1', '/api/v1/communication/devices/*'],
  ['/%70ay/tok', '/pay/*'],
  ['/PAY/tok', '/pay/*'],
  ['/pay;x/tok', '/pay/*'],
  ['/pay%2Ftok', '/pay/*'],
  ['/api/v1/%70ayment/Notifications/x', '/api/v1/payment/notifications/*'],
])('of %s only %s is shown', (target, shown) => {
  expect(shownPath(target)).toBe(shown);
  expect(shownUpstreamPath('/api/v1/tok', target)).toBe('/*');
});

test.each(['/pay', '/payroll/7', '/api/v1/payment/transactions/7', '/api/v1/shop/Pay/%37', '/', '*', ''])(
  '%j is shown as it came',
  (target) => {
    expect(shownPath(target)).toBe(target);
    expect(shownUpstreamPath('/api/v1/7', target)).toBe('/api/v1/7');
  },
);
