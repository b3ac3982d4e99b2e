import { randomBytes } from 'node:crypto';
import { Type } from 'typebox';
import type { Call, Calls } from './calls.ts';
import { assertChargeable, parseAmount, parseCurrency } from './currencies.ts';
import { addCustomers, addMethods } from './customers.ts';
import { invalid } from './errors.ts';
import { API_VERSION } from './events.ts';
import { assertUsable, getMethod } from './methods.ts';
import type { PaymentIntent } from './objects.ts';
import {
  Digits,
  Expand,
  Flag,
  ListParameters,
  MetadataParameter,
  metadataOf,
  Parameters,
  readParameters,
  Text,
} from './parameters.ts';
import { cancel, confirm, createIntent, refund } from './payments.ts';
import { pageOf } from './store.ts';
import { cancelSubscription } from './subscriptions.ts';

const CreateIntent = Parameters({
  amount: Digits,
  currency: Text,
  automatic_payment_methods: Type.Optional(
    Parameters({ enabled: Flag, allow_redirects: Type.Optional(Type.Enum(['always', 'never'])) }),
  ),
  capture_method: Type.Optional(Type.Enum(['automatic', 'automatic_async'])),
  confirm: Type.Optional(Flag),
  customer: Type.Optional(Text),
  description: Type.Optional(Text),
  error_on_requires_action: Type.Optional(Flag),
  metadata: Type.Optional(MetadataParameter),
  off_session: Type.Optional(Flag),
  payment_method: Type.Optional(Text),
  receipt_email: Type.Optional(Text),
  return_url: Type.Optional(Text),
  setup_future_usage: Type.Optional(Type.Enum(['off_session', 'on_session'])),
  statement_descriptor_suffix: Type.Optional(Text),
  expand: Expand,
});
const ConfirmIntent = Parameters({
  payment_method: Type.Optional(Text),
  off_session: Type.Optional(Flag),
  return_url: Type.Optional(Text),
  expand: Expand,
});
const CancelIntent = Parameters({
  cancellation_reason: Type.Optional(Type.Enum(['abandoned', 'duplicate', 'fraudulent', 'requested_by_customer'])),
  expand: Expand,
});
const CreateRefund = Parameters({
  amount: Type.Optional(Digits),
  charge: Type.Optional(Text),
  metadata: Type.Optional(MetadataParameter),
  payment_intent: Type.Optional(Text),
  reason: Type.Optional(Type.Enum(['duplicate', 'fraudulent', 'requested_by_customer'])),
  expand: Expand,
});
const CreateEndpoint = Parameters({
  url: Text,
  enabled_events: Type.Array(Text, { minItems: 1 }),
  api_version: Type.Optional(Text),
  description: Type.Optional(Text),
  metadata: Type.Optional(MetadataParameter),
  expand: Expand,
});
const OfCustomer = ListParameters({ customer: Type.Optional(Text) });
const SECRET_BYTES = 24;

/** Everything under `/v1` but checkout sessions. */
export function addApi(calls: Calls): void {
  addCustomers(calls);
  addMethods(calls);
  addIntents(calls);
  addRefunds(calls);
  addSubscriptions(calls);
  addEvents(calls);
}

function addIntents(calls: Calls): void {
  const path = '/v1/payment_intents';
  calls.on('POST', path, (call) => {
    const asked = readParameters(CreateIntent, call.parameters);
    const currency = parseCurrency(asked.currency, 'currency');
    const amount = parseAmount(asked.amount, currency, 'amount');
    assertChargeable(amount, currency, 'amount');
    if (asked.off_session === 'true' && asked.confirm !== 'true')
      throw invalid('off_session can only be given together with confirm=true.', 'off_session');
    const customer = asked.customer === undefined ? null : call.store.get('customer', asked.customer, 'customer').id;
    const method =
      asked.payment_method === undefined ? undefined : getMethod(call, asked.payment_method, 'payment_method');
    if (method !== undefined) assertUsable(call, method, customer);
    if (asked.confirm === 'true' && method === undefined)
      throw invalid('You cannot confirm this PaymentIntent because it is missing a payment method.', 'payment_method');
    const { description, metadata, setup_future_usage: usage = null } = asked;
    const intent = createIntent(call, { amount, currency, customer, description, metadata, setup_future_usage: usage });
    if (method === undefined) return intent;
    const ready = call.store.put<PaymentIntent>({
      ...intent,
      status: 'requires_confirmation',
      payment_method: method.id,
    });
    if (asked.confirm !== 'true') return ready;
    return confirm(call, ready, { method, isOffSession: asked.off_session === 'true' });
  });
  calls.on('POST', `${path}/:id/confirm`, (call) => {
    const asked = readParameters(ConfirmIntent, call.parameters);
    const intent = call.store.get('payment_intent', call.id);
    const methodId = asked.payment_method ?? intent.payment_method;
    if (methodId === null) throw invalid('The PaymentIntent is missing a payment method.', 'payment_method');
    const method = getMethod(call, methodId, 'payment_method');
    assertUsable(call, method, intent.customer);
    return confirm(call, intent, { method, isOffSession: asked.off_session === 'true' });
  });
  calls.on('POST', `${path}/:id/cancel`, (call) => {
    readParameters(CancelIntent, call.parameters);
    return cancel(call, call.store.get('payment_intent', call.id));
  });
  calls.on('GET', `${path}/:id`, ({ id, store }) => store.get('payment_intent', id));
  calls.on('GET', path, ({ store, path, parameters }) => {
    const query = readParameters(OfCustomer, parameters);
    const intents = store.all('payment_intent');
    return pageOf(
      query.customer === undefined ? intents : intents.filter((one) => one.customer === query.customer),
      path,
      query,
    );
  });
}

function addRefunds(calls: Calls): void {
  const OfPayment = ListParameters({ payment_intent: Type.Optional(Text), charge: Type.Optional(Text) });
  calls.on('POST', '/v1/refunds', (call) => {
    const asked = readParameters(CreateRefund, call.parameters);
    const { store } = call;
    const chargeId = asked.charge ?? paidChargeOf(call, asked.payment_intent);
    const charge = store.get('charge', chargeId, 'charge');
    const left = charge.amount - charge.amount_refunded;
    const amount = asked.amount === undefined ? left : parseAmount(asked.amount, charge.currency, 'amount');
    return refund(call, { charge, amount, reason: asked.reason ?? null, metadata: metadataOf(asked.metadata) });
  });
  calls.on('GET', '/v1/refunds/:id', ({ id, store }) => store.get('refund', id));
  calls.on('GET', '/v1/refunds', ({ store, path, parameters }) => {
    const query = readParameters(OfPayment, parameters);
    const refunds = store
      .all('refund')
      .filter(({ payment_intent }) => query.payment_intent === undefined || payment_intent === query.payment_intent)
      .filter(({ charge }) => query.charge === undefined || charge === query.charge);
    return pageOf(refunds, path, query);
  });
  calls.on('GET', '/v1/charges/:id', ({ id, store }) => store.get('charge', id));
  calls.on('GET', '/v1/charges', ({ store, path, parameters }) => {
    const filters = { customer: Type.Optional(Text), payment_intent: Type.Optional(Text) };
    const query = readParameters(ListParameters(filters), parameters);
    const charges = store
      .all('charge')
      .filter(({ payment_intent }) => query.payment_intent === undefined || payment_intent === query.payment_intent)
      .filter(({ customer }) => query.customer === undefined || customer === query.customer);
    return pageOf(charges, path, query);
  });
  calls.on('GET', '/v1/balance_transactions/:id', ({ id, store }) => store.get('balance_transaction', id));
  calls.on('GET', '/v1/balance_transactions', ({ store, path, parameters }) => {
    const filters = { type: Type.Optional(Type.Enum(['charge', 'refund'])), source: Type.Optional(Text) };
    const query = readParameters(ListParameters(filters), parameters);
    const transactions = store
      .all('balance_transaction')
      .filter(({ type }) => query.type === undefined || type === query.type)
      .filter(({ source }) => query.source === undefined || source === query.source);
    return pageOf(transactions, path, query);
  });
}

function addSubscriptions(calls: Calls): void {
  const path = '/v1/subscriptions';
  calls.on('GET', `${path}/:id`, ({ id, store }) => store.get('subscription', id));
  calls.on('GET', path, ({ store, path, parameters }) => {
    const query = readParameters(OfCustomer, parameters);
    const all = store.all('subscription');
    return pageOf(
      query.customer === undefined ? all : all.filter((one) => one.customer === query.customer),
      path,
      query,
    );
  });
  calls.on('POST', `${path}/:id`, ({ id, store, parameters, emit }) => {
    const Update = Parameters({ cancel_at_period_end: Flag, expand: Expand });
    const asked = readParameters(Update, parameters);
    const cancel_at_period_end = asked.cancel_at_period_end === 'true';
    const updated = store.put({ ...store.get('subscription', id), cancel_at_period_end });
    emit('customer.subscription.updated', updated);
    return updated;
  });
  calls.on('DELETE', `${path}/:id`, (call) => cancelSubscription(call, call.store.get('subscription', call.id)));
  calls.on('GET', '/v1/invoices/:id', ({ id, store }) => store.get('invoice', id));
}

function addEvents(calls: Calls): void {
  const path = '/v1/webhook_endpoints';
  calls.on('POST', path, ({ store, parameters }) => {
    const asked = readParameters(CreateEndpoint, parameters);
    const { url, enabled_events, metadata, api_version = API_VERSION } = asked;
    if (!/^https?:$/.test(URL.parse(url)?.protocol ?? '')) throw invalid('Invalid URL: must be http or https.', 'url');
    const base = store.base('webhook_endpoint', 'we');
    const details = { url, enabled_events, api_version, metadata: metadataOf(metadata), status: 'enabled' } as const;
    const secret = `whsec_${randomBytes(SECRET_BYTES).toString('hex')}`;
    store.secrets.set(base.id, secret);
    // Only this answer has it.
    return { ...store.put({ ...base, ...details }), secret };
  });
  calls.on('GET', path, ({ store, path, parameters }) =>
    pageOf(store.all('webhook_endpoint'), path, readParameters(ListParameters({}), parameters)),
  );
  calls.on('DELETE', `${path}/:id`, ({ id, store }) => {
    store.delete(store.get('webhook_endpoint', id).id);
    return { id, object: 'webhook_endpoint', deleted: true };
  });
  calls.on('GET', '/v1/events/:id', ({ id, store }) => store.get('event', id));
  calls.on('GET', '/v1/events', ({ store, path, parameters }) => {
    const query = readParameters(ListParameters({ type: Type.Optional(Text) }), parameters);
    const events = store.all('event').filter(({ type }) => query.type === undefined || type === query.type);
    return pageOf(events, path, query);
  });
}

function paidChargeOf({ store }: Call, intentId: string | undefined): string {
  if (intentId === undefined)
    throw invalid('One of the following params should be provided: charge, payment_intent.', 'charge');
  const intent = store.get('payment_intent', intentId, 'payment_intent');
  if (intent.status === 'succeeded' && intent.latest_charge !== null) return intent.latest_charge;
  throw invalid('This PaymentIntent does not have a successful charge to refund.', 'payment_intent');
}
