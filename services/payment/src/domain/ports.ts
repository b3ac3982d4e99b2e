/** The providers that there are; `provider` of the contract. */
export type ProviderName = 'payfast' | 'yoco' | 'stripe' | 'sandbox';

/** An amount in minor units of its currency (ISO 4217), such as cents. */
export interface Money {
  readonly amount: bigint;
  readonly currency: string;
}

/**
 * What became of a call that moves money or prepares to (docs/decisions/0310).
 *
 * - `accepted`: the provider has it.
 * - `refused`: it will not do it, now or later. The same call would be refused again.
 * - `failed`: it surely has not done it, and may do it later.
 * - `unknown`: it may have done it. Only a lookup, a notification or, where the provider is
 *   `repeatable` for the operation, the same call with the same key may find out.
 */
export type Outcome<Accepted> =
  | { readonly outcome: 'accepted'; readonly value: Accepted }
  | { readonly outcome: 'refused'; readonly reason: RefusalReason }
  | { readonly outcome: 'failed'; readonly reason: FailureReason; readonly retryAfterMs?: number }
  | { readonly outcome: 'unknown'; readonly reason: UnknownReason; readonly retryAfterMs?: number };

/** Why a provider refuses, as `details.reason` of PAYMENT_FAILED. */
export type RefusalReason =
  /** The payer's bank or card says no. */
  | 'declined'
  | 'insufficient_funds'
  | 'card_expired'
  /** The payer has to be present: a new checkout is needed. */
  | 'authentication_required'
  /** The stored method is gone. */
  | 'method_unusable'
  | 'not_refundable'
  | 'amount_not_accepted'
  /** The provider finds the call itself wrong. */
  | 'not_accepted'
  /** This provider, or this mode of it, cannot do that. */
  | 'not_supported';

type FailureReason =
  /** No connection came about. */
  | 'unreachable'
  /** Our account is not let in: somebody has to mend the settings. */
  | 'credentials'
  | 'rate_limited';

type UnknownReason =
  /** It was sent, and no whole answer came. */
  | 'no_answer'
  | 'server_error'
  /** The answer cannot be read, or says something else than what was asked for. */
  | 'unreadable_answer'
  /** The same call is under way, or another one had its key. */
  | 'conflict';

/** What a provider cannot take, found before it is called; by {@link PaymentProvider.rejectionsOf}. */
export type AmountRejection =
  | { readonly code: 'CURRENCY_NOT_SUPPORTED'; readonly currencies: readonly string[] }
  /** `minimum` in minor units. */
  | { readonly code: 'AMOUNT_TOO_SMALL'; readonly minimum: bigint }
  /** `multipleOf` in minor units. */
  | { readonly code: 'AMOUNT_NOT_SUPPORTED'; readonly multipleOf: bigint };

/**
 * What a checkout is for.
 *
 * - `pay`: one payment.
 * - `pay-and-keep`: a payment whose method is kept for charges without the payer.
 * - `keep`: the method alone; the amount is 0, or what the provider holds and gives back.
 */
export type CheckoutPurpose = 'pay' | 'pay-and-keep' | 'keep';

export interface CheckoutRequest {
  readonly paymentId: string;
  /** 1 for the first. Another number is another call: see {@link idempotencyKeyOf}. */
  readonly attempt: number;
  readonly purpose: CheckoutPurpose;
  readonly money: Money;
  readonly customerEmail: string;
  readonly itemName: string;
  /** Where the payer comes back to. Coming back proves nothing. */
  readonly returnUrl: string;
  readonly cancelUrl: string;
}

/** Where the payer is to go. */
export type Redirect =
  | { readonly kind: 'url'; readonly url: string }
  /** By a form that the browser posts; fields in this order, which their signature covers. */
  | {
      readonly kind: 'form';
      readonly url: string;
      readonly fields: readonly (readonly [string, string])[];
      /** Sources of the policy that the provider sends the browser on to, besides the origin of the URL. */
      readonly leadsTo?: readonly string[];
    }
  /** The page with Pay and Decline that is ours. */
  | { readonly kind: 'sandbox-page' };

export interface Checkout {
  /** The provider's id of the checkout, for lookups. */
  readonly checkoutRef: string;
  readonly redirect: Redirect;
}

/** A method of a customer that can be charged without the payer. It is a secret: sealed at rest. */
export interface StoredMethod {
  readonly token: string;
}

export interface StoredCharge {
  readonly paymentId: string;
  readonly attempt: number;
  readonly money: Money;
  readonly itemName: string;
  readonly method: StoredMethod;
}

export interface Charge {
  /** The provider's id of the movement of money, which refunds and settlements name. */
  readonly chargeRef: string;
  /** False where the provider still works on it: a notification or a lookup ends it. */
  readonly isSettled: boolean;
}

/** A payment as the provider may know it. */
export interface PaymentQuestion {
  readonly paymentId: string;
  readonly money: Money;
  readonly createdAt: Date;
  readonly checkoutRef?: string;
  readonly chargeRef?: string;
  /** Where it was a charge of a stored method. */
  readonly method?: StoredMethod;
}

export interface RefundRequest {
  readonly refundId: string;
  readonly paymentId: string;
  readonly attempt: number;
  readonly money: Money;
  /** What was paid, and what of it went back by refunds that are over. */
  readonly paid: bigint;
  readonly refundedBefore: bigint;
  /** When the provider was called; of more calls with one key, the first. */
  readonly calledAt: Date;
  /** For people; 3 to 255 characters. */
  readonly reason: string;
  readonly chargeRef: string;
  readonly checkoutRef?: string;
  /** Of the provider, where an earlier answer told it. */
  readonly refundRef?: string;
}

export interface Refund {
  /** The provider's id of the refund, where it has one. */
  readonly refundRef?: string;
  readonly isSettled: boolean;
}

/**
 * Which payment a fact is about, as far as the provider tells. A charge of a stored method is known
 * by `chargeRef`: `paymentId` may be that of an older payment of the same method (PayFast).
 */
export interface PaymentReference {
  readonly paymentId?: string;
  readonly checkoutRef?: string;
  readonly chargeRef?: string;
  readonly token?: string;
}

interface RefundReference {
  readonly refundId?: string;
  readonly refundRef?: string;
  readonly chargeRef?: string;
}

/**
 * Something that a provider says. Facts repeat and come in any order: the domain moves states by
 * guarded updates. Money has to equal what was expected to the minor unit; two captures of one
 * payment are the same one only where `chargeRef` is.
 */
export type ProviderFact =
  | {
      readonly kind: 'payment.succeeded';
      readonly payment: PaymentReference;
      readonly money: Money;
      /** What the provider keeps, in minor units of the same currency. */
      readonly fee?: bigint;
      readonly method?: StoredMethod;
    }
  | { readonly kind: 'payment.processing'; readonly payment: PaymentReference }
  | { readonly kind: 'payment.failed'; readonly payment: PaymentReference; readonly reason: RefusalReason }
  /** The payer may try again: it moves no state. */
  | { readonly kind: 'payment.attempt_failed'; readonly payment: PaymentReference; readonly reason: RefusalReason }
  | { readonly kind: 'payment.expired'; readonly payment: PaymentReference }
  | { readonly kind: 'payment.cancelled'; readonly payment: PaymentReference }
  | { readonly kind: 'method.stored'; readonly payment: PaymentReference; readonly method: StoredMethod }
  | { readonly kind: 'method.cancelled'; readonly token: string }
  | { readonly kind: 'refund.succeeded'; readonly refund: RefundReference; readonly money: Money }
  | { readonly kind: 'refund.failed'; readonly refund: RefundReference; readonly money: Money }
  | {
      readonly kind: 'dispute.opened' | 'dispute.won' | 'dispute.lost';
      readonly payment: PaymentReference;
      /** The provider's id of the dispute: a payment may have several. */
      readonly disputeRef: string;
      readonly money: Money;
    }
  /** Nothing that we know; a person has to look. `what` holds no personal data. */
  | { readonly kind: 'unclear'; readonly payment: PaymentReference; readonly what: string };

/**
 * What a lookup found.
 *
 * - `facts`: what the provider says of it now.
 * - `open`: it has it, and the payer has not decided, or it works on it.
 * - `absent`: it surely has none, nor will it: a new call may be made.
 * - `unknown`: it did not say, or cannot; to be asked again.
 */
export type Lookup =
  | { readonly found: 'facts'; readonly facts: readonly ProviderFact[] }
  | { readonly found: 'open' }
  | { readonly found: 'absent' }
  | { readonly found: 'unknown'; readonly retryAfterMs?: number };

/** A notification as it came. */
export interface RawNotification {
  /** By names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The bytes, before any parser. */
  readonly body: Buffer;
  /** Of the sender, as the gateway vouches for it. */
  readonly remoteAddress: string | undefined;
}

/** A notification that its provider has surely sent. */
export interface VerifiedNotification {
  /** One event has one key, however often it is sent. */
  readonly eventKey: string;
  /** What a person should know, such as an address that is new; without personal data. */
  readonly warnings: readonly string[];
}

/** A line of the provider's own list, for the settlement check. */
export interface SettlementLine {
  readonly kind: 'payment' | 'refund' | 'other';
  readonly at: Date;
  readonly currency: string;
  /** Minor units; what leaves our account is negative. */
  readonly gross: bigint;
  /** Minor units; negative where the provider keeps it. */
  readonly fee: bigint;
  readonly net: bigint;
  readonly chargeRef?: string;
  readonly paymentId?: string;
}

/** What a provider is asked to do. Each may take up to the timeout of its settings. */
export interface PaymentProvider {
  readonly name: ProviderName;
  /** Operations that may be called again with the same ids, because the provider knows our key. */
  readonly repeatable: ReadonlySet<'checkout' | 'charge' | 'refund'>;
  /**
   * Pure. Why the provider cannot take an amount, all of it; empty: it can. One that takes a single
   * currency judges the amount as of that.
   */
  rejectionsOf(money: Money, purpose: CheckoutPurpose | 'charge'): readonly AmountRejection[];
  createCheckout(request: CheckoutRequest): Promise<Outcome<Checkout>>;
  /**
   * Lets nobody pay at a checkout any more. Refused: it is over already, or there is none. Absent where
   * the provider cannot.
   *
   * @param checkoutRef of {@link Checkout}.
   */
  closeCheckout?(checkoutRef: string): Promise<Outcome<unknown>>;
  lookUp(question: PaymentQuestion): Promise<Lookup>;
  refund(request: RefundRequest): Promise<Outcome<Refund>>;
  lookUpRefund(request: RefundRequest): Promise<Lookup>;
  /** Absent where the provider stores no methods: invoices are sent instead. */
  readonly stored?: StoredMethods;
  /**
   * Whether the provider sent it: signature, source, our account.
   *
   * @throws NotificationError
   */
  verify(notification: RawNotification): Promise<VerifiedNotification>;
  /**
   * Pure. What a verified notification says; nothing where it is of no concern.
   *
   * @throws NotificationError with MALFORMED
   */
  readFacts(body: Buffer): readonly ProviderFact[];
  /** The provider's list from one instant to before another, in any order; absent where it has none. */
  settlement?(from: Date, to: Date): Promise<Settlement>;
}

/** Charges without the payer. */
export interface StoredMethods {
  charge(charge: StoredCharge): Promise<Outcome<Charge>>;
  /** Has the provider keep it no longer. Refused: it does not by now. */
  forget(method: StoredMethod): Promise<Outcome<unknown>>;
}

export type Settlement =
  | { readonly found: 'lines'; readonly lines: readonly SettlementLine[] }
  | { readonly found: 'unknown'; readonly retryAfterMs?: number };

/**
 * Why a notification is not taken: `FORGED` (401, nothing is kept), `MALFORMED` (400), `UNVERIFIED`
 * (the provider could not be asked whether it is its own: 503, it will be sent again).
 */
export type NotificationFault = 'FORGED' | 'MALFORMED' | 'UNVERIFIED';

/**
 * The key by which a provider knows a call again: made of our ids alone, so that it is equal over
 * retries and restarts (case A20).
 */
export function idempotencyKeyOf(operation: 'pay' | 'refund', id: string, attempt: number): string {
  return `${operation}:${id}:${attempt}`;
}
