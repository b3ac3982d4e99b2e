import { expect, test } from 'vitest';
import type { SendOutcome } from './ports.ts';
import { reasonOfReport, shownReason, withReason } from './reasons.ts';

test.each<[SendOutcome, string]>([
  [{ outcome: 'unknown', reason: 'UND_ERR_SOCKET' }, 'no-answer'],
  [{ outcome: 'unknown', reason: 'no id' }, 'no-answer'],
  [{ outcome: 'failed', reason: 'ECONNREFUSED' }, 'not-reached'],
  [{ outcome: 'failed', reason: 'UND_ERR_CONNECT_TIMEOUT' }, 'not-reached'],
  [{ outcome: 'failed', reason: '503' }, 'not-taken'],
  [{ outcome: 'failed', reason: '451 4.7.1' }, 'not-taken'],
  [{ outcome: 'failed', reason: '429' }, 'rate-limited'],
  [{ outcome: 'failed', reason: '454 4.7.0' }, 'rate-limited'],
  [{ outcome: 'failed', reason: 'smpp 20' }, 'rate-limited'],
  [{ outcome: 'refused', cause: 'credit', reason: '402' }, 'credit-used-up'],
  [{ outcome: 'refused', cause: 'recipient', reason: '552 5.2.2' }, 'recipient-refused'],
  [
    { outcome: 'refused', cause: 'recipient', reason: '550 5.1.1', suppress: { kind: 'address-unknown' } },
    'address-unknown',
  ],
])('%j is told as %s, with its code', (outcome, reason) => {
  const told = withReason(outcome);
  expect('reason' in told && shownReason(told.reason)).toEqual({
    reason,
    detail: 'reason' in outcome ? outcome.reason : undefined,
  });
});

test('a report has a reason where something went wrong alone', () => {
  expect(reasonOfReport('delivered', { reason: 'DEVICE_ACK' })).toBeUndefined();
  expect(shownReason(reasonOfReport('bounced', { reason: '5.2.2' }))).toEqual({
    reason: 'not-delivered',
    detail: '5.2.2',
  });
  const suppress = { kind: 'address-unknown' } as const;
  expect(shownReason(reasonOfReport('bounced', { suppress }))).toEqual({ reason: 'address-unknown', detail: null });
  expect(shownReason(reasonOfReport('complained', {}))).toEqual({ reason: 'complaint', detail: null });
});

test.each([
  [undefined, { reason: null, detail: null }],
  ['expired: not-taken: 503', { reason: 'expired', detail: 'not-taken: 503' }],
  ['550 5.1.1', { reason: 'other', detail: '550 5.1.1' }],
])('%s is shown as %j', (stored, shown) => {
  expect(shownReason(stored)).toEqual(shown);
});
