import { expect, test } from 'vitest';
import { readJson } from '../call.ts';
import { Envelope } from './api.ts';
import { outcomeOfCharge } from './charges.ts';

const outcome = (status: number, body: unknown) => outcomeOfCharge(status, readJson(Envelope, JSON.stringify(body)));
const failed = (response: unknown, message?: string) => ({ code: 400, status: 'failed', data: { response, message } });

test.each([true, 'true'])('a response of %j is a charge', (response) => {
  const data = { response, message: 'Transaction was successful(00)', pf_payment_id: '1324567' };
  expect(outcome(200, { code: 200, status: 'success', data })).toEqual({
    outcome: 'accepted',
    value: { chargeRef: '1324567', isSettled: true },
  });
});

test.each([
  [failed(4, 'The subscription is not in a valid state.'), { reason: 'method_unusable' }],
  [failed(false, 'Failure'), { reason: 'declined' }],
  [failed(4, 'Transaction was unsuccessful(51)'), { reason: 'insufficient_funds' }],
  [failed(false, 'Declined (51)'), { reason: 'insufficient_funds' }],
  [failed(false, 'Declined (54)'), { reason: 'card_expired' }],
  [failed(false, 'Declined (05)'), { reason: 'declined' }],
])('%j is refused', (body, refusal) => {
  expect(outcome(400, body)).toEqual({ outcome: 'refused', ...refusal });
});

// Case A17: a charge that ends in an answer that nobody understands may have been made.
test.each([
  [200, {}],
  [200, []],
  [200, { status: 'success', data: { response: true } }],
  [200, { status: 'success', data: { response: true, pf_payment_id: '1'.repeat(256) } }],
  [200, { status: 'success', data: { response: { code: 1, reason: 'x' }, pf_payment_id: '1' } }],
  [400, {}],
  [400, { status: 'success', data: { response: true, pf_payment_id: '1' } }],
])('an answer %i of %j is not known to be anything', (status, body) => {
  expect(outcome(status, body)).toEqual({ outcome: 'unknown', reason: 'unreadable_answer' });
});
