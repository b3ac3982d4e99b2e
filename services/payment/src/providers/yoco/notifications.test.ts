import { signStandard } from '@rollcall/platform/webhooks/signatures.ts';
import { expect, test } from 'vitest';
import { someNotification } from '../testing/requests.ts';
import { factsOfEvent, verifyEvent } from './notifications.ts';

// The vector: npm svix 1.99.1, npm standardwebhooks 1.1.1 and PyPI standardwebhooks 1.1.0 agree.
const SECRET = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX';
const AT = 1_795_168_800;
const BODY =
  '{"id":"evt_N1","type":"payment.succeeded","createdDate":"2026-11-20T10:00:00.000000Z","payload":{"id":"p_1",' +
  '"type":"payment","createdDate":"2026-11-20T09:59:58.000000Z","amount":14950,"currency":"ZAR","status":"succeeded",' +
  '"mode":"test","metadata":{"checkoutId":"ch_1"}}}';
const SIGNATURE = 'v1,wVkTGdLxFfnhnMs6N/UOp+2ePXzyxzLqg+kSd9hQDeQ=';

const settings = {
  secretKey: 'sk_test_1',
  webhookSecrets: [SECRET],
  apiUrl: new URL('https://payments.yoco.com/api'),
};
const headers = { 'webhook-id': 'msg_2abc', 'webhook-timestamp': `${AT}`, 'webhook-signature': SIGNATURE };
const at = (seconds: number) => new Date((AT + seconds) * 1000);
const verify = (changes: Record<string, string> = {}, body = BODY, now = at(0)) =>
  verifyEvent(someNotification(body, { ...headers, ...changes }), settings, now);

test.each([
  ['the vector', {}],
  ['one of several signatures', { 'webhook-signature': `v1,AAAA ${SIGNATURE}` }],
])('%s is signed; its key is the id of the event', (_what, changes) => {
  expect(verify(changes)).toBe('evt_N1');
});

test.each([-300, 300])('it may be %i seconds off', (seconds) => {
  expect(verify({}, BODY, at(seconds))).toBe('evt_N1');
});

test.each([-301, 301])('it may not be %i seconds off', (seconds) => {
  expect(() => verify({}, BODY, at(seconds))).toThrow('five minutes off');
});

test.each([
  ['another body', {}, BODY.replace('14950', '14951')],
  ['another id', { 'webhook-id': 'msg_2abd' }, BODY],
  ['a signature of another version', { 'webhook-signature': SIGNATURE.replace('v1', 'v2') }, BODY],
  ['an empty signature', { 'webhook-signature': '' }, BODY],
  ['no time', { 'webhook-timestamp': 'now' }, BODY],
])('%s is forged', (_what, changes, body) => {
  expect(() => verify(changes, body)).toThrow('not taken');
});

test('what is not signed at all is forged', () => {
  expect(() => verifyEvent(someNotification(BODY), settings, at(0))).toThrow('not signed');
});

test('while a secret is replaced, either is good', () => {
  const other = { ...settings, webhookSecrets: ['whsec_BBECAwQFBgcICQoLDA0ODxAREhMUFRYX', SECRET] };
  expect(verifyEvent(someNotification(BODY, headers), other, at(0))).toBe('evt_N1');
});

test('an event of the test mode is not taken for live money', () => {
  const live = { ...settings, secretKey: 'sk_live_1' };
  expect(() => verifyEvent(someNotification(BODY, headers), live, at(0))).toThrow('another mode');
});

test('signed garbage cannot be read', () => {
  const signature = signStandard(SECRET, { id: 'msg_2abc', timestamp: `${AT}`, body: '{"id":1}' });
  expect(() => verify({ 'webhook-signature': signature }, '{"id":1}')).toThrow('cannot be read');
});

test('a payment is that of its checkout', () => {
  expect(factsOfEvent(Buffer.from(BODY))).toEqual([
    {
      kind: 'payment.succeeded',
      payment: { chargeRef: 'p_1', checkoutRef: 'ch_1' },
      money: { amount: 14950n, currency: 'ZAR' },
    },
  ]);
});

const event = (type: string, payload: Record<string, unknown>) => {
  const base = { id: 'x_1', amount: 6000, currency: 'ZAR', mode: 'test' };
  return Buffer.from(JSON.stringify({ id: 'evt_1', type, payload: { ...base, ...payload } }));
};

test.each(['refund.succeeded', 'refund.failed'])('%s names our refund and the payment', (type) => {
  expect(factsOfEvent(event(type, { paymentId: 'p_1', metadata: { refundId: 'r' } }))).toEqual([
    {
      kind: type,
      refund: { refundRef: 'x_1', chargeRef: 'p_1', refundId: 'r' },
      money: { amount: 6000n, currency: 'ZAR' },
    },
  ]);
});

test('a card that was declined leaves the checkout as it is', () => {
  expect(factsOfEvent(event('payment.failed', {}))).toMatchObject([{ kind: 'payment.attempt_failed' }]);
});

test('an event of another kind says nothing', () => {
  expect(factsOfEvent(event('payout.sent', {}))).toEqual([]);
});

test.each([1.5, -1, '6000', null])('an amount of %j cannot be read', (amount) => {
  expect(() => factsOfEvent(event('payment.succeeded', { amount }))).toThrow('cannot be read');
});
