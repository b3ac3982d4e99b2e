import { type Static, Type } from 'typebox';
import type { TestCard } from './cards.ts';
import { assertChargeable, parseAmount, parseCurrency } from './currencies.ts';
import { invalid, unexpectedState } from './errors.ts';
import { attach, createMethod } from './methods.ts';
import type { CheckoutSession, Customer, LineItem, PaymentIntent, PaymentMethod } from './objects.ts';
import { Digits, Expand, MetadataParameter, metadataOf, Parameters, Text } from './parameters.ts';
import { confirm, createIntent, type Work } from './payments.ts';
import { subscribe } from './subscriptions.ts';

const Recurring = Parameters({
  interval: Type.Enum(['day', 'week', 'month', 'year']),
  interval_count: Type.Optional(Digits),
});
const PriceData = Parameters({
  currency: Text,
  unit_amount: Digits,
  product_data: Parameters({
    name: Text,
    description: Type.Optional(Text),
    metadata: Type.Optional(MetadataParameter),
  }),
  recurring: Type.Optional(Recurring),
});
const ChargeData = {
  description: Type.Optional(Text),
  metadata: Type.Optional(MetadataParameter),
};

/** The parameters of `POST /v1/checkout/sessions`, without prices that were made before. */
export const CreateSession = Parameters({
  mode: Type.Enum(['payment', 'setup', 'subscription']),
  success_url: Text,
  cancel_url: Type.Optional(Text),
  client_reference_id: Type.Optional(Text),
  currency: Type.Optional(Text),
  customer: Type.Optional(Text),
  customer_creation: Type.Optional(Type.Enum(['always', 'if_required'])),
  customer_email: Type.Optional(Text),
  expires_at: Type.Optional(Digits),
  line_items: Type.Optional(Type.Array(Parameters({ price_data: PriceData, quantity: Digits }), { maxItems: 100 })),
  locale: Type.Optional(Text),
  metadata: Type.Optional(MetadataParameter),
  payment_intent_data: Type.Optional(
    Parameters({
      ...ChargeData,
      receipt_email: Type.Optional(Text),
      setup_future_usage: Type.Optional(Type.Enum(['off_session', 'on_session'])),
      statement_descriptor_suffix: Type.Optional(Text),
    }),
  ),
  setup_intent_data: Type.Optional(Parameters(ChargeData)),
  submit_type: Type.Optional(Type.Enum(['auto', 'book', 'donate', 'pay', 'subscribe'])),
  subscription_data: Type.Optional(Parameters(ChargeData)),
  ui_mode: Type.Optional(Type.Enum(['hosted_page'])),
  expand: Expand,
});
type SessionParameters = Static<typeof CreateSession>;

/** What a session was asked for and does not show. */
export type SessionTerms = Pick<SessionParameters, 'payment_intent_data' | 'setup_intent_data' | 'subscription_data'>;

const SHORTEST_S = 30 * 60;
const LONGEST_S = 24 * 60 * 60;

/**
 * @param pageOf where the page of a session is.
 * @throws StripeError for what its mode or its currency does not allow.
 */
export function createSession(work: Work, asked: SessionParameters, pageOf: (id: string) => string): CheckoutSession {
  const { store } = work;
  const { mode, customer, customer_email, customer_creation, metadata, client_reference_id } = asked;
  assertCombination(asked);
  const items = (asked.line_items ?? []).map((item, index) => lineItemOf(item, `line_items[${index}][price_data]`));
  const currency =
    items[0]?.price.currency ?? (asked.currency === undefined ? null : parseCurrency(asked.currency, 'currency'));
  assertOneCurrency(items);
  const total = items.reduce((sum, { price, quantity }) => sum + price.unit_amount * quantity, 0);
  if (mode !== 'setup' && currency !== null) assertChargeable(total, currency, 'line_items');
  if (customer !== undefined) store.get('customer', customer, 'customer');
  const base = { ...store.base('checkout.session', 'cs_test'), ui_mode: 'hosted_page' } as const;
  const amount = mode === 'setup' ? null : total;
  const session = store.put<CheckoutSession>({
    ...base,
    mode,
    status: 'open',
    payment_status: mode === 'setup' ? 'no_payment_required' : 'unpaid',
    amount_subtotal: amount,
    amount_total: amount,
    currency,
    metadata: metadataOf(metadata),
    client_reference_id: client_reference_id ?? null,
    customer: customer ?? null,
    customer_creation: mode === 'payment' ? (customer_creation ?? 'if_required') : null,
    customer_email: customer_email ?? null,
    customer_details: customer_email === undefined ? null : { email: customer_email },
    payment_intent: null,
    setup_intent: null,
    subscription: null,
    invoice: null,
    success_url: asked.success_url,
    cancel_url: asked.cancel_url ?? null,
    url: pageOf(base.id),
    expires_at: expiryOf(asked.expires_at, base.created),
  });
  store.lineItems.set(session.id, items);
  return session;
}

/** What the buyer did: the session, complete, and what came of it. @throws StripeError 402 where the card is declined. */
export function completeSession(
  work: Work,
  session: CheckoutSession,
  { card, terms }: { readonly card: TestCard; readonly terms: SessionTerms },
): CheckoutSession {
  const { store, emit } = work;
  const customer = customerOf(work, session, terms);
  const method = createMethod(work, card);
  const complete = store.put<CheckoutSession>({
    ...session,
    ...resultsOf(work, { session, terms, method, customer }),
    status: 'complete',
    payment_status: session.mode === 'setup' ? 'no_payment_required' : 'paid',
    customer: customer?.id ?? null,
    url: null,
  });
  emit('checkout.session.completed', complete);
  return complete;
}

/** @throws StripeError where the session is not open. */
export function expireSession({ store, emit }: Work, session: CheckoutSession): CheckoutSession {
  if (session.status !== 'open')
    throw unexpectedState(
      '',
      `Only Checkout Sessions with a status in ["open"] can be expired. It is ${session.status}.`,
    );
  const expired = store.put<CheckoutSession>({ ...session, status: 'expired', url: null });
  emit('checkout.session.expired', expired);
  return expired;
}

/** What a buyer's card brings about, by the session's mode. */
function resultsOf(
  work: Work,
  made: { session: CheckoutSession; terms: SessionTerms; method: PaymentMethod; customer: Customer | undefined },
): Partial<CheckoutSession> {
  const { session, terms, method, customer } = made;
  if (session.mode === 'payment') return { payment_intent: pay(work, made).id };
  if (customer === undefined) throw new Error('a session of this mode has a customer');
  const { id: payment_method } = attach(work, method, customer);
  if (session.mode === 'subscription') {
    const subscription = subscribe(work, {
      session,
      customer,
      payment_method,
      metadata: terms.subscription_data?.metadata,
    });
    return { subscription: subscription.id, invoice: subscription.latest_invoice };
  }
  const intent = work.store.put({
    ...work.store.base('setup_intent', 'seti'),
    status: 'succeeded',
    usage: 'off_session',
    customer: customer.id,
    payment_method,
    metadata: metadataOf(terms.setup_intent_data?.metadata),
  });
  work.emit('setup_intent.succeeded', intent);
  return { setup_intent: intent.id };
}

function pay(
  work: Work,
  made: { session: CheckoutSession; terms: SessionTerms; method: PaymentMethod; customer: Customer | undefined },
): PaymentIntent {
  const { session, terms, customer } = made;
  const { amount_total: amount, currency } = session;
  if (amount === null || currency === null) throw new Error('a session of this mode has an amount');
  const usage = terms.payment_intent_data?.setup_future_usage ?? null;
  const order = { amount, currency, customer: customer?.id ?? null, setup_future_usage: usage };
  const { description, metadata } = terms.payment_intent_data ?? {};
  const intent = createIntent(work, { ...order, description, metadata });
  const method = usage === null || customer === undefined ? made.method : attach(work, made.method, customer);
  // The buyer is at the page, and authenticates there.
  return confirm(work, intent, { method, isOffSession: false });
}

function customerOf(work: Work, session: CheckoutSession, terms: SessionTerms): Customer | undefined {
  const { store, emit } = work;
  if (session.customer !== null) return store.get('customer', session.customer);
  const isNeeded =
    session.mode !== 'payment' ||
    session.customer_creation === 'always' ||
    terms.payment_intent_data?.setup_future_usage !== undefined;
  if (!isNeeded) return undefined;
  const customer = store.put<Customer>({
    ...store.base('customer', 'cus'),
    email: session.customer_email,
    name: null,
    description: null,
    metadata: {},
    invoice_settings: { default_payment_method: null },
  });
  emit('customer.created', customer);
  return customer;
}

function lineItemOf(
  { price_data, quantity }: NonNullable<SessionParameters['line_items']>[number],
  param: string,
): LineItem {
  const currency = parseCurrency(price_data.currency, `${param}[currency]`);
  const unit_amount = parseAmount(price_data.unit_amount, currency, `${param}[unit_amount]`);
  const { recurring, product_data } = price_data;
  const { interval, interval_count = '1' } = recurring ?? {};
  return {
    price: {
      currency,
      unit_amount,
      name: product_data.name,
      recurring: interval === undefined ? null : { interval, interval_count: Number(interval_count) },
    },
    quantity: Number(quantity),
  };
}

function assertCombination({
  mode,
  line_items = [],
  customer,
  customer_email,
  currency,
  ...asked
}: SessionParameters): void {
  if (customer !== undefined && customer_email !== undefined)
    throw invalid('You may only specify one of these parameters: customer, customer_email.', 'customer');
  if (mode !== 'payment' && asked.payment_intent_data !== undefined)
    throw invalid('payment_intent_data is for sessions in payment mode.', 'payment_intent_data');
  if (mode === 'subscription' && asked.customer_creation !== undefined)
    throw invalid('customer_creation is for sessions in payment and setup mode.', 'customer_creation');
  if (mode === 'setup') {
    if (line_items.length > 0) throw invalid('line_items cannot be given in setup mode.', 'line_items');
    if (currency === undefined)
      throw invalid('currency is required in setup mode, to choose payment methods.', 'currency');
    return;
  }
  if (line_items.length === 0) throw invalid(`line_items are required in ${mode} mode.`, 'line_items');
  const isRecurring = line_items.some(({ price_data }) => price_data.recurring !== undefined);
  if (mode === 'payment' && isRecurring) throw invalid('A recurring price needs subscription mode.', 'mode');
  if (mode === 'subscription' && !isRecurring)
    throw invalid('You must provide at least one recurring price in subscription mode.', 'line_items');
}

function assertOneCurrency(items: readonly LineItem[]): void {
  if (new Set(items.map(({ price }) => price.currency)).size <= 1) return;
  throw invalid('All line items must have the same currency.', 'line_items');
}

function expiryOf(text: string | undefined, now: number): number {
  if (text === undefined) return now + LONGEST_S;
  const at = Number(text);
  if (at >= now + SHORTEST_S && at <= now + LONGEST_S) return at;
  throw invalid('The `expires_at` timestamp must be between 30 minutes and 24 hours from now.', 'expires_at');
}
