import { systemClock } from '@rollcall/platform/clock.ts';
import { Stripe } from 'stripe';
import { Agent } from 'undici';
import { afterAll, expect, test } from 'vitest';
import { someNotification } from '../testing/requests.ts';
import { factsOfEvent } from './events.ts';
import { createStripe } from './stripe.ts';

// The vector: npm stripe 23.1.0 and PyPI stripe 16.1.0 agree. It has no `livemode`.
const SECRET = 'whsec_test_secret';
const AT = 1_795_168_800;
const VECTOR =
  '{"id":"evt_1","object":"event","type":"checkout.session.completed","data":{"object":{"id":"cs_test_1",' +
  '"object":"checkout.session","payment_status":"paid"}}}';
const VECTOR_SIGNATURE = `t=${AT},v1=3dd55e1b1fecceaf4149a4c275d13e2d68df9ac8beacbb389cde045563ea95c8`;

const dispatcher = new Agent();
afterAll(() => dispatcher.close());
const at = (seconds: number) => ({ ...systemClock, now: () => new Date((AT + seconds) * 1000) });
const stripeAt = (seconds: number, secretKey = 'sk_test_1', secrets = [SECRET]) =>
  createStripe({
    settings: { secretKey, webhookSecrets: secrets, apiUrl: new URL('http://127.0.0.1:9') },
    clock: at(seconds),
    dispatcher,
    timeoutMs: 1000,
  });

const event = (type: string, object: unknown, livemode = false) =>
  JSON.stringify({ id: 'evt_1', object: 'event', type, livemode, data: { object } });
const facts = (type: string, object: unknown) => factsOfEvent(Buffer.from(event(type, object)));

/** As Stripe signs (docs.stripe.com/webhooks/signature). */
function signed(body: string) {
  const header = new Stripe('sk_test_1').webhooks.generateTestHeaderString({
    payload: body,
    secret: SECRET,
    timestamp: AT,
  });
  return someNotification(body, { 'stripe-signature': header });
}

const session = {
  id: 'cs_1',
  mode: 'payment',
  status: 'complete',
  payment_status: 'paid',
  amount_total: 14_950,
  currency: 'zar',
  payment_intent: 'pi_1',
  metadata: { paymentId: 'p' },
};
const intent = {
  id: 'pi_1',
  status: 'succeeded',
  amount_received: 9900,
  currency: 'zar',
  customer: 'cus_1',
  payment_method: 'pm_1',
  metadata: { paymentId: 'p', origin: 'stored' },
};

test('the vector is signed, and says nothing that is taken for an event', async () => {
  const notification = someNotification(VECTOR, { 'stripe-signature': VECTOR_SIGNATURE });
  await expect(stripeAt(0).verify(notification)).rejects.toMatchObject({ code: 'MALFORMED' });
});

test('an event is signed for five minutes; its id is its key', async () => {
  const notification = signed(event('checkout.session.completed', session));
  expect(await stripeAt(300).verify(notification)).toEqual({ eventKey: 'evt_1', warnings: [] });
  await expect(stripeAt(301).verify(notification)).rejects.toMatchObject({ code: 'FORGED' });
});

test('while a secret is replaced, either is good', async () => {
  const notification = signed(event('checkout.session.completed', session));
  expect(await stripeAt(0, 'sk_test_1', ['whsec_new', SECRET]).verify(notification)).toMatchObject({
    eventKey: 'evt_1',
  });
});

test('another body, another secret, no signature and another mode are forged', async () => {
  const notification = signed(event('checkout.session.completed', session));
  const forgeries = [
    stripeAt(0).verify({ ...notification, body: Buffer.from(notification.body.toString().replace('14950', '1')) }),
    stripeAt(0, 'sk_test_1', ['whsec_other']).verify(notification),
    stripeAt(0, 'sk_test_1', []).verify(notification),
    stripeAt(0).verify({ ...notification, headers: {} }),
    stripeAt(0, 'sk_live_1').verify(notification),
  ];
  const codes = await Promise.all(forgeries.map((forgery) => forgery.catch((error: { code: string }) => error.code)));
  expect(codes).toEqual(['FORGED', 'FORGED', 'FORGED', 'FORGED', 'FORGED']);
});

test.each([
  ['checkout.session.completed', {}, { kind: 'payment.succeeded', money: { amount: 14950n, currency: 'ZAR' } }],
  ['checkout.session.completed', { payment_status: 'unpaid' }, { kind: 'payment.processing' }],
  ['checkout.session.async_payment_succeeded', {}, { kind: 'payment.succeeded' }],
  ['checkout.session.async_payment_failed', { payment_status: 'unpaid' }, { kind: 'payment.failed' }],
  ['checkout.session.expired', { status: 'expired', payment_status: 'unpaid' }, { kind: 'payment.expired' }],
])('%s with %j is what it says', (type, changes, fact) => {
  const payment = { paymentId: 'p', checkoutRef: 'cs_1', chargeRef: 'pi_1' };
  expect(facts(type, { ...session, ...changes })).toMatchObject([{ ...fact, payment }]);
});

test.each([
  ['that keeps a card', { mode: 'setup', payment_status: 'no_payment_required' }],
  ['of another program', { metadata: {} }],
  ['without metadata', { metadata: null }],
])('a session %s says nothing', (_what, changes) => {
  expect(facts('checkout.session.completed', { ...session, ...changes })).toEqual([]);
});

test('a charge that was kept has the method with its customer', () => {
  const object = { ...intent, setup_future_usage: 'off_session', metadata: { paymentId: 'p', origin: 'checkout' } };
  expect(facts('payment_intent.succeeded', object)).toEqual([
    {
      kind: 'payment.succeeded',
      payment: { paymentId: 'p', chargeRef: 'pi_1' },
      money: { amount: 9900n, currency: 'ZAR' },
      method: { token: 'cus_1/pm_1' },
    },
  ]);
});

test('a card that is kept without a payment is told by its SetupIntent', () => {
  const setup = { id: 'seti_1', status: 'succeeded', customer: 'cus_1', payment_method: 'pm_1' };
  expect(facts('setup_intent.succeeded', { ...setup, metadata: { paymentId: 'p' } })).toEqual([
    { kind: 'method.stored', payment: { paymentId: 'p' }, method: { token: 'cus_1/pm_1' } },
  ]);
});

test.each([
  ['stored', 'payment.failed'],
  ['checkout', 'payment.attempt_failed'],
])('a decline of origin %s is %s', (origin, kind) => {
  const fault = { code: 'card_declined', decline_code: 'insufficient_funds' };
  const changes = {
    status: 'requires_payment_method',
    last_payment_error: fault,
    metadata: { paymentId: 'p', origin },
  };
  expect(facts('payment_intent.payment_failed', { ...intent, ...changes })).toMatchObject([
    { kind, reason: 'insufficient_funds' },
  ]);
});

test.each([
  ['succeeded', ['refund.succeeded']],
  ['failed', ['refund.failed']],
  ['canceled', ['refund.failed']],
  ['pending', []],
])('a refund that is %s is %j', (status, kinds) => {
  const refund = {
    id: 're_1',
    status,
    amount: 6000,
    currency: 'zar',
    payment_intent: 'pi_1',
    metadata: { refundId: 'r' },
  };
  const told = facts('refund.updated', refund);
  expect(told.map(({ kind }) => kind)).toEqual(kinds);
  for (const fact of told) {
    expect(fact).toMatchObject({
      refund: { refundRef: 're_1', chargeRef: 'pi_1', refundId: 'r' },
      money: { amount: 6000n },
    });
  }
});

test.each([
  ['charge.dispute.created', 'needs_response', ['dispute.opened']],
  ['charge.dispute.created', 'warning_needs_response', []],
  ['charge.dispute.closed', 'won', ['dispute.won']],
  ['charge.dispute.closed', 'lost', ['dispute.lost']],
])('%s with status %s is %j', (type, status, kinds) => {
  const dispute = { id: 'dp_1', status, amount: 6000, currency: 'zar', payment_intent: { id: 'pi_1' } };
  expect(facts(type, dispute).map(({ kind }) => kind)).toEqual(kinds);
});

test('an event of another kind says nothing', () => {
  expect(facts('customer.created', { id: 'cus_1' })).toEqual([]);
});

test.each([
  ['checkout.session.completed', { ...session, amount_total: '14950' }],
  ['checkout.session.completed', { ...session, currency: 'zzz' }],
  ['payment_intent.succeeded', {}],
  ['refund.updated', null],
])('%s with %j cannot be read', (type, object) => {
  expect(() => facts(type, object)).toThrow('cannot be read');
});
