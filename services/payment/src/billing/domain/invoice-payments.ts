import { commonError } from '@rollcall/platform/common-errors.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { paymentError } from '../../domain/errors.ts';
import type { Owner } from '../../domain/owner.ts';
import type { CheckoutPurpose, Money, ProviderName, StoredMethod } from '../../domain/ports.ts';
import { type Refusal, refuseFirst } from '../../domain/refusals.ts';
import type { TakingProvider } from '../../payments/domain/take.ts';
import type { CustomerStore } from './customers.ts';
import { amountDue, type Invoice, type InvoiceStore } from './invoices.ts';
import type { MethodStore } from './methods.ts';
import type { SubscriptionStore } from './subscriptions.ts';

/** A payment, as billing sees it. */
interface BilledPayment {
  readonly id: string;
  readonly provider: ProviderName;
  /** Whether it is up to the payer; else a method is charged. */
  readonly isByCheckout: boolean;
  /** Where the payer goes; undefined where there is nothing to pay, or nowhere yet. */
  readonly url: string | undefined;
}

/** What a payment of billing has in common, by a checkout or by a method. */
interface BilledTerms {
  /** Decides which payment it is: the same id has one effect. */
  readonly id: string;
  readonly subject: string;
  readonly provider: ProviderName | undefined;
  readonly money: Money;
  readonly customerId: string;
  readonly customerEmail: string;
  readonly itemName: string;
  readonly invoiceId: string | undefined;
}

type CheckoutTerms = BilledTerms & { readonly purpose: CheckoutPurpose; readonly returnUrl: string | undefined };
type ChargeTerms = BilledTerms & { readonly provider: ProviderName; readonly method: StoredMethod };

/** What billing asks of payments. Errors are those of payments. */
export interface BilledPayments {
  /** The provider of a name, or the default one; or PROVIDER_NOT_CONFIGURED. */
  providerOf(name: ProviderName | undefined): TakingProvider | Refusal;
  find(id: string): Promise<BilledPayment | undefined>;
  /** Gives up one that is not over, where there is one. */
  cancel(id: string): Promise<void>;
  open(terms: CheckoutTerms): Promise<BilledPayment>;
  /** `open`: a notification or a lookup ends it. `not_tried`: the same id may be charged later. */
  charge(terms: ChargeTerms): Promise<{
    readonly outcome: 'succeeded' | 'declined' | 'open' | 'not_tried';
    readonly reason?: string | undefined;
    readonly retryAfterMs?: number | undefined;
  }>;
}

export interface PaymentClaim {
  readonly invoiceId: string;
  readonly owner: Owner;
  readonly paymentId: string;
  /** Whether it is up to the payer. */
  readonly isByCheckout: boolean;
}

export interface ClaimedInvoice {
  readonly invoice: Invoice;
  /** That pays it: the one that was claimed, or another that came before. */
  readonly paymentId: string;
}

export interface InvoicePaymentStore {
  /**
   * One payment at a time pays an invoice; undefined where there is no such invoice.
   *
   * @throws ServiceError CONFLICT where nothing is to be paid.
   */
  claim(claim: PaymentClaim): Promise<ClaimedInvoice | undefined>;
  /** The payment was surely never made. */
  release(invoiceId: string, paymentId: string): Promise<void>;
}

export interface PayingDeps {
  readonly customers: CustomerStore;
  readonly invoices: InvoiceStore;
  readonly invoicePayments: InvoicePaymentStore;
  readonly subscriptions: SubscriptionStore;
  readonly methods: MethodStore;
  readonly payments: BilledPayments;
  readonly log: Logger;
}

interface PayRequest {
  /** Of the payment, where there is none yet. */
  readonly id: string;
  readonly owner: Owner;
  readonly invoiceId: string;
  /** That is charged; undefined: the payer pays at a checkout. */
  readonly methodId: string | undefined;
  readonly provider: ProviderName | undefined;
  readonly returnUrl: string | undefined;
}

export interface PaidInvoice {
  readonly invoice: Invoice;
  readonly paymentUrl: string | undefined;
}

/**
 * Has an open invoice paid: by a method of the customer, or at a checkout. While a payment of it is
 * under way there is no other: that one is the answer, unless it is not what is asked for.
 *
 * @throws ServiceError NOT_FOUND, CONFLICT, METHOD_NOT_FOUND, and those of payments.
 */
export async function payInvoice(deps: PayingDeps, request: PayRequest): Promise<PaidInvoice> {
  const { invoices, invoicePayments, payments } = deps;
  const { id, owner, invoiceId, methodId } = request;
  const wanted = await invoices.find(invoiceId, owner);
  if (wanted === undefined) throw commonError('NOT_FOUND');
  const plan = await planPayment(deps, wanted, request);
  const claim = { invoiceId, owner, paymentId: id, isByCheckout: methodId === undefined };
  const claimed = await invoicePayments.claim(claim);
  if (claimed === undefined) throw commonError('NOT_FOUND');
  const { paymentId } = claimed;
  const before = await payments.find(paymentId);
  try {
    const payment = before ?? (await plan({ id: paymentId, amount: amountDue(claimed.invoice) }));
    refuseAnother(payment, request);
    const invoice = await invoices.find(invoiceId, owner);
    return { invoice: invoice ?? claimed.invoice, paymentUrl: payment.url };
  } catch (error) {
    if ((await payments.find(paymentId)) === undefined) await invoicePayments.release(invoiceId, paymentId);
    throw error;
  }
}

/** @throws ServiceError CONFLICT where the payment that is under way is by another provider, or by the payer. */
function refuseAnother({ id, provider, isByCheckout }: BilledPayment, wanted: PayRequest): void {
  const isMeant = wanted.provider === undefined || wanted.provider === provider;
  if (wanted.methodId === undefined ? isMeant : !isByCheckout) return;
  const message = 'Another payment of it is under way; cancel that payment first';
  throw paymentError('CONFLICT', { message, details: { status: 'open', paymentId: id, provider } });
}

type Pay = (payment: { readonly id: string; readonly amount: bigint }) => Promise<BilledPayment>;

/** Checks what can be checked before anything is claimed. */
async function planPayment(deps: PayingDeps, invoice: Invoice, request: PayRequest): Promise<Pay> {
  const { payments, customers } = deps;
  const { methodId, returnUrl } = request;
  const { customerId, subject, currency, issued, subscription } = invoice;
  const customer = await customers.find(customerId, undefined);
  if (customer === undefined) throw new Error('The customer of an invoice is gone');
  const common = {
    subject,
    customerId,
    customerEmail: customer.email,
    itemName: `Invoice ${issued?.number ?? ''}`.trim(),
    invoiceId: invoice.id,
  };
  if (methodId !== undefined) {
    const method = (await deps.methods.listOf([customerId])).find((each) => each.id === methodId && each.usable);
    if (method === undefined) throw paymentError('METHOD_NOT_FOUND');
    return async ({ id, amount }) => {
      const terms = { ...common, id, money: { amount, currency }, provider: method.provider, method: method.method };
      const { outcome, reason } = await payments.charge(terms);
      if (outcome === 'declined') throw paymentError('PAYMENT_FAILED', { details: { reason, paymentId: id } });
      return { id, provider: method.provider, isByCheckout: false, url: undefined };
    };
  }
  const record = subscription && (await deps.subscriptions.find(subscription.id, undefined));
  const provider = payments.providerOf(request.provider ?? record?.provider);
  if ('error' in provider) throw provider.error;
  const isKept = record?.subscription.collection === 'charge_automatically' && provider.keepsMethods;
  const purpose = isKept ? 'pay-and-keep' : 'pay';
  refuseFirst(provider.refusalsOf({ amount: amountDue(invoice), currency }, purpose));
  return ({ id, amount }) =>
    payments.open({ ...common, id, money: { amount, currency }, provider: provider.name, purpose, returnUrl });
}
