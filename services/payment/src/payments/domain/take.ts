import type { Clock } from '@rollcall/platform/clock.ts';
import { paymentError } from '../../domain/errors.ts';
import { isSettled } from '../../domain/payment-states.ts';
import type {
  AmountRejection,
  Charge,
  Checkout,
  Money,
  Outcome,
  PaymentProvider,
  ProviderName,
  StoredMethod,
} from '../../domain/ports.ts';
import { type Refusal, refuseFirst } from '../../domain/refusals.ts';
import { CHECKOUT_AGAIN_MS } from './due.ts';
import type { Payment, PaymentStore, PaymentTerms } from './payments.ts';

/** Who does not pay within a day has to be asked again. */
const OPEN_MS = 24 * 3_600_000;

/** The providers that have settings here. */
export interface Providers {
  readonly names: readonly ProviderName[];
  /** Of payments that name none. */
  readonly default: ProviderName | undefined;
  find(name: ProviderName): PaymentProvider | undefined;
}

export interface TakingDeps {
  readonly payments: PaymentStore;
  readonly providers: Providers;
  /** Base URL of our pages, without a slash at its end. */
  readonly publicUrl: string;
  readonly clock: Clock;
}

/** A payment by its payer. `id` decides which one it is: the same id has one effect. */
type CheckoutTerms = Omit<PaymentTerms, 'provider' | 'purpose' | 'method'> & {
  /** The default where undefined. */
  readonly provider?: ProviderName | undefined;
  readonly purpose: Exclude<PaymentTerms['purpose'], 'charge'>;
};

/** A charge of a method that its provider keeps, without the payer. */
type ChargeTerms = Omit<PaymentTerms, 'purpose' | 'method'> & { readonly method: StoredMethod };

/**
 * What became of a charge.
 *
 * - `succeeded`: the money is there.
 * - `declined`: the payment failed; `reason` as of the provider. Another charge has another id.
 * - `open`: the outcome is not known, or the provider works on it. There must be no other charge for
 *   the same thing; `OnPaymentMoved` tells how it ends.
 * - `not_tried`: the provider surely has not done it. The same id may be charged again later.
 */
interface ChargeResult {
  readonly outcome: 'succeeded' | 'declined' | 'open' | 'not_tried';
  readonly payment: Payment;
  readonly reason?: string | undefined;
  readonly retryAfterMs?: number | undefined;
}

/** A provider, as those see it who have something paid. */
export interface TakingProvider {
  readonly name: ProviderName;
  /** Whether it keeps methods, for charges without the payer. */
  readonly keepsMethods: boolean;
  /** All why it cannot take the money, by `currency` and `amount`; empty: it can. */
  refusalsOf(money: Money, purpose: PaymentTerms['purpose']): readonly Refusal[];
}

/** How payments begin. Amounts are in minor units. */
export interface Taking {
  /** The provider of a name, or the default one; or PROVIDER_NOT_CONFIGURED. */
  providerOf(name: ProviderName | undefined): TakingProvider | Refusal;
  /**
   * Makes a payment and the provider's checkout of it. Its outcome may not be known: it is
   * `processing` then, and its checkout comes later.
   *
   * @throws ServiceError PAYMENT_FAILED, PROVIDER_NOT_CONFIGURED, PROVIDER_ERROR, and what the
   * provider cannot take.
   */
  open(terms: CheckoutTerms): Promise<Payment>;
  /** Asks for the checkout of a payment (again) that has none yet. @throws as `open`. */
  makeCheckout(payment: Payment): Promise<Payment>;
  /**
   * Charges a stored method once for each id, however often it is called.
   *
   * @throws ServiceError PROVIDER_NOT_CONFIGURED, also where the provider keeps no methods; and what
   * the provider cannot take.
   */
  charge(terms: ChargeTerms): Promise<ChargeResult>;
  /** Makes the same call for a charge that surely was not made, at a provider that knows our key. */
  chargeAgain(payment: Payment): Promise<void>;
}

/** The way that money comes in (docs/decisions/0352). */
export function createTaking(deps: TakingDeps): Taking {
  const { payments, providers, publicUrl, clock } = deps;
  const expiry = () => new Date(clock.now().getTime() + OPEN_MS);

  async function makeCheckout(payment: Payment): Promise<Payment> {
    const { id, state, purpose, provider: name, money, customerEmail, itemName } = payment;
    if (state === 'failed') throw paymentFailed(payment);
    if (purpose === 'charge' || payment.checkoutRef !== undefined || isSettled(state)) return payment;
    const provider = providerOf(providers, name);
    await payments.beginCall(id);
    const page = pageOf(publicUrl, payment);
    const outcome = await provider.createCheckout({
      paymentId: id,
      attempt: 1,
      purpose,
      money,
      customerEmail,
      itemName,
      returnUrl: `${page}/return`,
      cancelUrl: `${page}/cancel`,
    });
    return settleCheckout(id, outcome);
  }

  async function settleCheckout(id: string, outcome: Outcome<Checkout>): Promise<Payment> {
    if (outcome.outcome === 'accepted') {
      const checkout = outcome.value;
      return payments.change(id, ({ payment }) =>
        payment.checkoutRef === undefined ? { event: 'checkout_made', source: 'provider', checkout } : undefined,
      );
    }
    const { reason } = outcome;
    if (outcome.outcome === 'refused') {
      throw paymentFailed(await payments.change(id, () => ({ event: 'declined', source: 'provider', reason })));
    }
    if (outcome.outcome === 'unknown') {
      return payments.change(id, () => ({ event: 'submitted', source: 'provider', reason }));
    }
    const { retryAfterMs = 0 } = outcome;
    await payments.withdrawCall(id, Math.max(retryAfterMs, CHECKOUT_AGAIN_MS));
    throw notReached(id, outcome);
  }

  return {
    makeCheckout,
    providerOf(named = providers.default) {
      const provider = named === undefined ? undefined : providers.find(named);
      return provider === undefined ? { field: 'provider', error: notConfigured(providers) } : takingProvider(provider);
    },
    async open({ provider: named, ...terms }) {
      const provider = providerOf(providers, named ?? providers.default);
      refuseFirst(moneyRefusals(provider.rejectionsOf(terms.money, terms.purpose)));
      return makeCheckout(await payments.create({ ...terms, provider: provider.name }, expiry()));
    },
    async charge(terms) {
      refuseFirst(moneyRefusals(storingProviderOf(providers, terms.provider).rejectionsOf(terms.money, 'charge')));
      // The one that is there may have been made by other terms, and a key stands for one call.
      const payment = await payments.create({ ...terms, purpose: 'charge' }, expiry());
      // Who finds it begun does not know what became of it: it is looked up, and never charged twice.
      if (!(await payments.beginCall(payment.id))) return resultOf(await known(payments, payment.id));
      return settleCharge(deps, payment, await callFor(deps, payment));
    },
    async chargeAgain(payment) {
      const outcome = await callFor(deps, payment);
      // That says nothing of the call before.
      if (outcome.outcome !== 'failed') await settleCharge(deps, payment, outcome);
    },
  };
}

async function settleCharge(
  { payments, clock }: TakingDeps,
  { id, money }: Payment,
  outcome: Outcome<Charge>,
): Promise<ChargeResult> {
  if (outcome.outcome === 'accepted') {
    const { chargeRef, isSettled: isOver } = outcome.value;
    const event = isOver ? 'captured' : 'submitted';
    const charge = isOver ? { chargeRef, money, fee: undefined } : undefined;
    const processingAt = isOver ? undefined : clock.now();
    return resultOf(await payments.change(id, () => ({ event, source: 'provider', charge, chargeRef, processingAt })));
  }
  const { reason } = outcome;
  if (outcome.outcome === 'failed') {
    await payments.withdrawCall(id);
    return { outcome: 'not_tried', payment: await known(payments, id), reason, retryAfterMs: outcome.retryAfterMs };
  }
  const event = outcome.outcome === 'refused' ? 'declined' : 'submitted';
  return resultOf(await payments.change(id, () => ({ event, source: 'provider', reason })));
}

async function known(payments: PaymentStore, id: string): Promise<Payment> {
  const payment = await payments.find(id, undefined);
  if (payment === undefined) throw new Error('The payment is gone');
  return payment;
}

/** Asks the provider once for the charge of a payment that is kept. */
async function callFor({ providers }: TakingDeps, payment: Payment): Promise<Outcome<Charge>> {
  const { id: paymentId, money, itemName, method, provider } = payment;
  if (method === undefined) throw new Error('The payment is no charge of a stored method');
  const { stored } = storingProviderOf(providers, provider);
  return stored.charge({ paymentId, attempt: 1, money, itemName, method });
}

/** Pure. Our page of a payment. */
function pageOf(publicUrl: string, { pageToken }: Payment): string {
  return `${publicUrl}/pay/${pageToken}`;
}

/** Pure. Where its payer goes to pay; undefined where there is nothing to pay, or nowhere yet. */
export function paymentUrlOf(publicUrl: string, payment: Payment): string | undefined {
  const { state, redirect } = payment;
  if (isSettled(state) || redirect === undefined) return undefined;
  return redirect.kind === 'url' ? redirect.url : pageOf(publicUrl, payment);
}

function takingProvider(provider: PaymentProvider): TakingProvider {
  return {
    name: provider.name,
    keepsMethods: provider.stored !== undefined,
    refusalsOf: (money, purpose) => moneyRefusals(provider.rejectionsOf(money, purpose)),
  };
}

function providerOf(providers: Providers, name: ProviderName | undefined): PaymentProvider {
  const provider = name === undefined ? undefined : providers.find(name);
  if (provider === undefined) throw notConfigured(providers);
  return provider;
}

function storingProviderOf(providers: Providers, name: ProviderName) {
  const provider = providerOf(providers, name);
  const { stored } = provider;
  if (stored === undefined) throw notConfigured(providers, 'The provider keeps no methods');
  return { ...provider, stored };
}

/** Pure. The error where a provider has no settings. */
export function notConfigured(providers: Providers, message?: string) {
  return paymentError('PROVIDER_NOT_CONFIGURED', { message, details: { providers: providers.names } });
}

function paymentFailed({ id, reason }: Payment) {
  return paymentError('PAYMENT_FAILED', { details: { reason, paymentId: id } });
}

/** The payment stays, and gets its checkout once the provider is there. */
function notReached(
  paymentId: string,
  { reason, retryAfterMs = 1000 }: Extract<Outcome<never>, { readonly outcome: 'failed' }>,
) {
  const headers = { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) };
  return paymentError('PROVIDER_ERROR', { headers, details: { reason, paymentId } });
}

function moneyRefusals(rejections: readonly AmountRejection[]): readonly Refusal[] {
  return rejections.map(({ code, ...why }) => {
    const shown = Object.entries(why).map(([name, value]) => [name, typeof value === 'bigint' ? Number(value) : value]);
    const field = code === 'CURRENCY_NOT_SUPPORTED' ? 'currency' : 'amount';
    return { field, error: paymentError(code, { details: Object.fromEntries(shown) }) };
  });
}

function resultOf(payment: Payment): ChargeResult {
  const { state, reason } = payment;
  if (!isSettled(state) || state === 'needs_review') return { outcome: 'open', payment, reason };
  const isPaid = state !== 'failed' && state !== 'expired' && state !== 'cancelled';
  return { outcome: isPaid ? 'succeeded' : 'declined', payment, reason };
}
