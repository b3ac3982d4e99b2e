import { Stripe } from 'stripe';
import { request } from 'undici';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Simulator } from './simulator.ts';
import { startStripe } from './stripe.ts';
import { type Receiver, startReceiver } from './testing/receiver.ts';

const SECRET = 'whsec_test_secret';
const VISA = '4242424242424242';
let simulator: Simulator;
let receiver: Receiver;
let stripe: Stripe;

beforeEach(async () => {
  receiver = await startReceiver();
  simulator = await startStripe({ webhook: { url: `${receiver.url}/stripe`, secret: SECRET }, retryDelaysMs: [5, 10] });
  stripe = clientOf(simulator);
});

afterEach(async () => {
  await simulator.stop();
  await receiver[Symbol.asyncDispose]();
});

describe('a checkout session', () => {
  test('is paid at its page, and told of by events that the client verifies', async () => {
    const session = await checkout();
    expect(session).toMatchObject({ status: 'open', payment_status: 'unpaid', amount_total: 29_900, currency: 'zar' });
    const page = await (await request(session.url ?? '')).body.text();
    expect(page).toContain('ZAR 299.00');
    expect(page).not.toContain('<script');
    const back = await pay(session, VISA);
    expect(back).toMatchObject({ statusCode: 303, headers: { location: `https://shop.example/paid?s=${session.id}` } });
    const paid = await stripe.checkout.sessions.retrieve(session.id, { expand: ['payment_intent.latest_charge'] });
    expect(paid).toMatchObject({
      status: 'complete',
      payment_status: 'paid',
      client_reference_id: 'payment-1',
      metadata: { order: '7' },
      payment_intent: {
        amount_received: 29_900,
        metadata: { payment: '1' },
        latest_charge: { captured: true, amount: 29_900 },
      },
    });
    await simulator.idle();
    expect(events().map(({ type }) => type)).toEqual([
      'payment_intent.created',
      'charge.succeeded',
      'payment_intent.succeeded',
      'checkout.session.completed',
    ]);
    expect(events().at(-1)?.data.object).toMatchObject({ id: session.id, payment_status: 'paid' });
    expect((await pay(session, VISA)).statusCode).toBe(409);
    const { data } = await stripe.checkout.sessions.listLineItems(session.id);
    expect(data).toMatchObject([{ description: 'Tea', quantity: 2, amount_total: 29_900 }]);
  });

  test('stays open when the card is declined, and when the buyer goes back', async () => {
    const session = await checkout();
    const declined = await pay(session, '4000000000000002');
    expect(declined.statusCode).toBe(402);
    expect(await declined.body.text()).toContain('Your card was declined.');
    expect((await pay(session, VISA, 'cancel')).headers['location']).toBe('https://shop.example/cart');
    expect(await stripe.checkout.sessions.retrieve(session.id)).toMatchObject({ status: 'open' });
    await simulator.idle();
    expect(events().map(({ type }) => type)).toContain('payment_intent.payment_failed');
    expect((await pay(session, VISA)).statusCode).toBe(303);
  });

  test('stores a card, which is charged later while its owner is away', async () => {
    const customer = await stripe.customers.create({ email: 'thandi@example.co.za' });
    const urls = { success_url: 'https://shop.example/stored' };
    const session = await stripe.checkout.sessions.create({
      mode: 'setup',
      currency: 'zar',
      customer: customer.id,
      ...urls,
    });
    await pay(session, VISA);
    const { setup_intent: setup } = await stripe.checkout.sessions.retrieve(session.id, { expand: ['setup_intent'] });
    expect(setup).toMatchObject({ status: 'succeeded', customer: customer.id });
    const { data } = await stripe.customers.listPaymentMethods(customer.id);
    expect(data).toMatchObject([{ type: 'card', card: { last4: '4242' } }]);
    const [method] = data;
    expect(await charge(customer.id, method?.id)).toMatchObject({ status: 'succeeded', amount_received: 9900 });
    await stripe.paymentMethods.detach(method?.id ?? '');
    expect((await stripe.paymentMethods.list({ customer: customer.id })).data).toEqual([]);
    await expect(charge(customer.id, method?.id)).rejects.toMatchObject({ param: 'payment_method' });
  });

  test('stores the card of a payment where that is asked for', async () => {
    const session = await checkout({ payment_intent_data: { setup_future_usage: 'off_session' } });
    await pay(session, VISA);
    const { customer } = await stripe.checkout.sessions.retrieve(session.id);
    expect((await stripe.customers.listPaymentMethods(typeof customer === 'string' ? customer : '')).data).toHaveLength(
      1,
    );
  });

  test('begins a subscription, which is cancelled', async () => {
    const price_data = {
      currency: 'zar',
      unit_amount: 9900,
      product_data: { name: 'Pro' },
      recurring: { interval: 'month' },
    } as const;
    const line_items = [{ quantity: 1, price_data }];
    const session = await checkout({ mode: 'subscription', line_items }, { success_url: 'https://shop.example/paid' });
    await pay(session, VISA);
    const { subscription } = await stripe.checkout.sessions.retrieve(session.id, {
      expand: ['subscription.latest_invoice'],
    });
    expect(subscription).toMatchObject({ status: 'active', latest_invoice: { status: 'paid', amount_paid: 9900 } });
    const id = typeof subscription === 'string' ? subscription : (subscription?.id ?? '');
    expect(await stripe.subscriptions.update(id, { cancel_at_period_end: true })).toMatchObject({ status: 'active' });
    expect(await stripe.subscriptions.cancel(id)).toMatchObject({ status: 'canceled' });
    await simulator.idle();
    expect(events().map(({ type }) => type)).toEqual(
      expect.arrayContaining(['invoice.paid', 'customer.subscription.deleted']),
    );
  });

  test('expires when it is told to', async () => {
    const session = await checkout();
    expect(await stripe.checkout.sessions.expire(session.id)).toMatchObject({ status: 'expired', url: null });
    await expect(stripe.checkout.sessions.expire(session.id)).rejects.toMatchObject({ statusCode: 400 });
    expect((await pay(session, VISA)).statusCode).toBe(409);
    await simulator.idle();
    expect(events().map(({ type }) => type)).toEqual(['checkout.session.expired']);
  });

  test('expires by itself, and is told of when somebody looks', async () => {
    await simulator.stop();
    let now = new Date('2026-11-20T10:00:00Z');
    simulator = await startStripe({ clock: { now: () => now, monotonicMs: () => 0 } });
    stripe = clientOf(simulator);
    const session = await checkout();
    now = new Date('2026-11-21T10:00:00Z');
    expect(await stripe.checkout.sessions.retrieve(session.id)).toMatchObject({ status: 'expired' });
  });
});

describe('amounts', () => {
  test.each([
    ['jpy', 9899],
    ['kwd', 35_200],
    ['zar', 100],
  ])('of %s are taken as they are', async (currency, amount) => {
    expect(await intent({ currency, amount })).toMatchObject({ currency, amount });
  });

  test.each([
    ['kwd', 35_201, 'invalid_amount'],
    ['ugx', 150, 'invalid_amount'],
    ['usd', 49, 'amount_too_small'],
    ['zar', 0, 'amount_too_small'],
    ['zar', 100_000_000, 'amount_too_large'],
    ['zar', 1.5, 'parameter_invalid_integer'],
    ['zar', -1, 'parameter_invalid_integer'],
    ['zzz', 100, undefined],
  ])('of %s are refused: %d', async (currency, amount, code) => {
    await expect(intent({ currency, amount })).rejects.toMatchObject({
      type: 'StripeInvalidRequestError',
      statusCode: 400,
      code,
    });
  });
});

describe('a stored card', () => {
  test.each([
    ['pm_card_chargeCustomerFail', 'card_declined', 'generic_decline'],
    ['pm_card_authenticationRequired', 'authentication_required', 'authentication_required'],
  ])('that is %s is declined while its owner is away', async (card, code, decline_code) => {
    const customer = await stripe.customers.create();
    const { id } = await stripe.paymentMethods.attach(card, { customer: customer.id });
    const error = await charge(customer.id, id).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Stripe.errors.StripeCardError);
    expect(error).toMatchObject({ code, decline_code, payment_intent: { status: 'requires_payment_method' } });
  });

  test('runs out of funds, and has some again, when it is told to', async () => {
    const customer = await stripe.customers.create();
    const { id } = await stripe.paymentMethods.attach('pm_card_visa', { customer: customer.id });
    simulator.setOutcomes({ [customer.id]: 'declined' });
    await expect(charge(customer.id, id)).rejects.toMatchObject({ decline_code: 'insufficient_funds' });
    simulator.setOutcomes({ [customer.id]: 'succeeded' });
    expect(await charge(customer.id, id)).toMatchObject({ status: 'succeeded' });
  });

  test('is charged for its own customer only', async () => {
    const [one, other] = [await stripe.customers.create(), await stripe.customers.create()];
    const { id } = await stripe.paymentMethods.attach('pm_card_visa', { customer: one.id });
    await expect(charge(other.id, id)).rejects.toMatchObject({ statusCode: 400, param: 'payment_method' });
  });
});

describe('a refund', () => {
  test('takes back parts, then the rest, and nothing more', async () => {
    const { id } = await paidIntent();
    expect(await stripe.refunds.create({ payment_intent: id, amount: 60 })).toMatchObject({ status: 'succeeded' });
    await expect(stripe.refunds.create({ payment_intent: id, amount: 60 })).rejects.toMatchObject({ param: 'amount' });
    expect(await stripe.refunds.create({ payment_intent: id })).toMatchObject({ amount: 40 });
    await expect(stripe.refunds.create({ payment_intent: id })).rejects.toMatchObject({
      code: 'charge_already_refunded',
    });
    expect((await stripe.refunds.list({ payment_intent: id })).data.map(({ amount }) => amount)).toEqual([40, 60]);
    const { data } = await stripe.balanceTransactions.list({ type: 'refund' });
    expect(data.map(({ net }) => net)).toEqual([-40, -60]);
  });

  test('that fails is pending first, and says so by an event', async () => {
    const { id } = await paidIntent();
    simulator.setOutcomes({ [id]: 'refund-failed' });
    const refund = await stripe.refunds.create({ payment_intent: id });
    expect(refund.status).toBe('pending');
    await simulator.idle();
    expect(events().find(({ type }) => type === 'refund.failed')?.data.object).toMatchObject({ id: refund.id });
    expect((await stripe.refunds.retrieve(refund.id)).status).toBe('failed');
  });
});

describe('a key', () => {
  test('stands for one charge, though its answer is lost', async () => {
    const order = { amount: 9900, currency: 'zar', payment_method: 'pm_card_visa', confirm: true };
    simulator.addFaults({ kind: 'reset', match: 'payment_intents', times: 2 });
    const idempotencyKey = 'pay:1:1';
    await expect(stripe.paymentIntents.create(order, { idempotencyKey })).rejects.toMatchObject({
      type: 'StripeConnectionError',
    });
    const found = await stripe.paymentIntents.create(order, { idempotencyKey });
    expect(found.lastResponse.headers['idempotent-replayed']).toBe('true');
    expect((await stripe.charges.list()).data).toHaveLength(1);
    await expect(stripe.paymentIntents.create({ ...order, amount: 9901 }, { idempotencyKey })).rejects.toMatchObject({
      type: 'StripeIdempotencyError',
      statusCode: 400,
    });
  });

  test('keeps a declined charge, and not what was refused for its parameters', async () => {
    const order = { amount: 9900, currency: 'zar', payment_method: 'pm_card_chargeDeclined', confirm: true };
    for (let call = 0; call < 2; call += 1)
      await expect(stripe.paymentIntents.create(order, { idempotencyKey: 'k' })).rejects.toMatchObject({
        statusCode: 402,
      });
    expect((await stripe.charges.list()).data).toHaveLength(1);
    await expect(intent({ amount: 0 }, { idempotencyKey: 'm' })).rejects.toMatchObject({ statusCode: 400 });
    expect(await intent({ amount: 100 }, { idempotencyKey: 'm' })).toMatchObject({ amount: 100 });
  });
});

describe('calls', () => {
  test('are refused without the key of the account, and with parameters that there are not', async () => {
    const stranger = clientOf(simulator, 'sk_test_other');
    await expect(stranger.customers.create()).rejects.toMatchObject({ type: 'StripeAuthenticationError' });
    const raw = await request(`${simulator.url}/v1/refunds`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk_test_simulated', 'content-type': 'application/x-www-form-urlencoded' },
      body: 'payment_intents=pi_1',
    });
    expect(await raw.body.json()).toMatchObject({ error: { code: 'parameter_unknown', param: 'payment_intents' } });
    await expect(stripe.paymentIntents.retrieve('pi_none')).rejects.toMatchObject({ code: 'resource_missing' });
  });

  test.each([
    [{ mode: 'payment', line_items: [] }, 'line_items'],
    [{ mode: 'setup', currency: undefined, line_items: undefined, payment_intent_data: undefined }, 'currency'],
    [{ customer: 'cus_none' }, 'customer'],
    [{ expires_at: 1 }, 'expires_at'],
    [{ success_url: undefined }, 'success_url'],
  ] as const)('for sessions are refused: %j', async (members, param) => {
    // Lists and texts that the client's types do not allow come as other clients would send them.
    await expect(checkout(JSON.parse(JSON.stringify({ ...SESSION, ...members })), {})).rejects.toMatchObject({ param });
  });

  test('meet the limit of rates', async () => {
    simulator.addFaults({ kind: 'status', status: 429, retryAfter: 1, times: 1 });
    await expect(stripe.customers.list()).rejects.toMatchObject({ type: 'StripeRateLimitError', statusCode: 429 });
  });

  test('list in pages, the newest first', async () => {
    for (const email of ['a@x.example', 'b@x.example', 'c@x.example']) await stripe.customers.create({ email });
    const first = await stripe.customers.list({ limit: 2 });
    expect(first).toMatchObject({ has_more: true, data: [{ email: 'c@x.example' }, { email: 'b@x.example' }] });
    const rest = await stripe.customers.list({ limit: 2, starting_after: first.data[1]?.id ?? '' });
    expect(rest).toMatchObject({ has_more: false, data: [{ email: 'a@x.example' }] });
    expect((await stripe.customers.list({ email: 'b@x.example' })).data).toHaveLength(1);
  });

  test('make, show and take away endpoints for events', async () => {
    const endpoint = await stripe.webhookEndpoints.create({
      url: `${receiver.url}/second`,
      enabled_events: ['customer.created'],
    });
    await stripe.customers.create();
    await simulator.idle();
    const second = receiver.taken.find(({ target }) => target === '/second');
    expect(verified(second, endpoint.secret).type).toBe('customer.created');
    await stripe.webhookEndpoints.del(endpoint.id);
    expect((await stripe.webhookEndpoints.list()).data).toHaveLength(1);
  });
});

describe('events', () => {
  test('are signed anew for each attempt', async () => {
    receiver.answers.push(500, 503);
    await stripe.customers.create();
    await simulator.idle();
    expect(events().map(({ id }) => id)).toHaveLength(3);
    expect(new Set(events().map(({ id }) => id)).size).toBe(1);
    expect(await stripe.events.retrieve(events()[0]?.id ?? '')).toMatchObject({ type: 'customer.created' });
  });

  test('come before the answer, backwards, or from another account when they are told to', async () => {
    simulator.addFaults({ kind: 'before-the-answer', times: 1 }, { kind: 'out-of-order', times: 1 });
    await paidIntent();
    const types = ['payment_intent.created', 'charge.succeeded', 'payment_intent.succeeded'];
    expect(events().map(({ type }) => type)).toEqual(types);
    await paidIntent();
    await simulator.idle();
    expect(events().map(({ type }) => type)).toEqual([...types, ...types.toReversed()]);
    simulator.addFaults({ kind: 'wrong-merchant' });
    await stripe.customers.create();
    await simulator.idle();
    expect(events().at(-1)?.account).toBe('acct_ofsomebodyelse');
  });

  test('are wrong in one way', async () => {
    simulator.addFaults({ kind: 'wrong-amount', times: 1 }, { kind: 'bad-signature', times: 1 });
    await paidIntent();
    await simulator.idle();
    expect(events().at(-1)?.data.object).toMatchObject({ amount: 200, amount_received: 200 });
    await stripe.customers.create();
    await simulator.idle();
    expect(() => verified(receiver.taken.at(-1))).toThrow(/No signatures found/);
  });
});

const SESSION: Stripe.Checkout.SessionCreateParams = {
  mode: 'payment',
  success_url: 'https://shop.example/paid?s={CHECKOUT_SESSION_ID}',
  cancel_url: 'https://shop.example/cart',
  client_reference_id: 'payment-1',
  metadata: { order: '7' },
  payment_intent_data: { metadata: { payment: '1' } },
  line_items: [{ quantity: 2, price_data: { currency: 'zar', unit_amount: 14_950, product_data: { name: 'Tea' } } }],
};

function clientOf({ url }: Simulator, key = 'sk_test_simulated'): Stripe {
  const { hostname: host, port } = new URL(url);
  return new Stripe(key, { host, port, protocol: 'http', maxNetworkRetries: 0, telemetry: false });
}

function checkout(
  members: Partial<Stripe.Checkout.SessionCreateParams> = {},
  base: Partial<Stripe.Checkout.SessionCreateParams> = SESSION,
) {
  return stripe.checkout.sessions.create(withoutUndefined({ ...base, ...members }));
}

function withoutUndefined<Value extends object>(value: Value): Value {
  return JSON.parse(JSON.stringify(value));
}

function intent(members: Partial<Stripe.PaymentIntentCreateParams>, options: Stripe.RequestOptions = {}) {
  return stripe.paymentIntents.create({ amount: 100, currency: 'zar', ...members }, options);
}

function paidIntent() {
  return intent({ payment_method: 'pm_card_visa', confirm: true });
}

function charge(customer: string, payment_method = '') {
  const order = { amount: 9900, currency: 'zar', customer, payment_method };
  return stripe.paymentIntents.create({ ...order, off_session: true, confirm: true });
}

async function pay({ url, id }: Stripe.Checkout.Session, card: string, outcome = 'pay') {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const page = url ?? `${simulator.url}/c/pay/${id}`;
  return await request(page, { method: 'POST', headers, body: new URLSearchParams({ card, outcome }).toString() });
}

function events(): readonly Stripe.Event[] {
  return receiver.taken.map((taken) => verified(taken));
}

function verified(taken: Receiver['taken'][number] | undefined, secret = SECRET): Stripe.Event {
  return stripe.webhooks.constructEvent(taken?.body ?? '', String(taken?.headers['stripe-signature']), secret);
}
