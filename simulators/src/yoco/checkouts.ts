import { randomUUID } from 'node:crypto';
import type { Clock } from '@rollcall/platform/clock.ts';
import { type Static, Type } from 'typebox';

/** The least that Yoco takes, in cents (WooCommerce plugin 3.9.1). */
const MINIMUM_CENTS = 200;
const MAXIMUM_CENTS = 99_999_999;
const Cents = Type.Integer({ minimum: 0, maximum: MAXIMUM_CENTS });
const Url = Type.String({ pattern: '^https?://', maxLength: 2000 });
const Metadata = Type.Record(Type.String(), Type.String());
const LineItem = Type.Object(
  {
    displayName: Type.String(),
    quantity: Type.Integer({ minimum: 1 }),
    description: Type.Optional(Type.String()),
    pricingDetails: Type.Object({
      price: Cents,
      taxAmount: Type.Optional(Cents),
      discountAmount: Type.Optional(Cents),
    }),
  },
  { additionalProperties: false },
);

/** The body of `POST /checkouts`. */
export const CheckoutRequest = Type.Object(
  {
    amount: Type.Integer({ minimum: MINIMUM_CENTS, maximum: MAXIMUM_CENTS }),
    currency: Type.Literal('ZAR'),
    cancelUrl: Type.Optional(Url),
    successUrl: Type.Optional(Url),
    failureUrl: Type.Optional(Url),
    metadata: Type.Optional(Metadata),
    externalId: Type.Optional(Type.String()),
    totalDiscount: Type.Optional(Cents),
    totalTaxAmount: Type.Optional(Cents),
    subtotalAmount: Type.Optional(Cents),
    lineItems: Type.Optional(Type.Array(LineItem)),
  },
  { additionalProperties: false },
);

/** The body of `POST /checkouts/{id}/refund`. */
export const RefundRequest = Type.Object(
  { amount: Type.Optional(Type.Integer({ minimum: 1, maximum: MAXIMUM_CENTS })), metadata: Type.Optional(Metadata) },
  { additionalProperties: false },
);

/** `test` or `live`, which the key decides. In test mode nothing can be refunded. */
export type ProcessingMode = 'test' | 'live';

/** A checkout as the API shows it. Amounts are cents of at most eight digits. */
export interface Checkout extends Static<typeof CheckoutRequest> {
  readonly id: string;
  readonly redirectUrl: string;
  readonly status: 'created' | 'started' | 'processing' | 'completed';
  readonly paymentId: string | null;
  readonly merchantId: string;
  readonly processingMode: ProcessingMode;
}

export interface Refund {
  readonly id: string;
  readonly checkoutId: string;
  readonly amount: number;
  readonly status: 'pending' | 'succeeded' | 'failed';
  readonly metadata: Readonly<Record<string, string>>;
}

/** What Yoco knows of one merchant, in memory. */
export class Checkouts {
  readonly #checkouts = new Map<string, Checkout>();
  readonly #refunds = new Map<string, Refund>();
  readonly #paidAt = new Map<string, Date>();
  readonly #clock: Clock;
  readonly #mode: ProcessingMode;

  constructor(clock: Clock, mode: ProcessingMode) {
    this.#clock = clock;
    this.#mode = mode;
  }

  /** @param pageOf where the payment page of a checkout is. */
  create(request: Static<typeof CheckoutRequest>, pageOf: (id: string) => string): Checkout {
    const id = createId('ch');
    const checkout: Checkout = {
      ...request,
      id,
      redirectUrl: pageOf(id),
      status: 'created',
      paymentId: null,
      merchantId: 'merchant-simulated',
      processingMode: this.#mode,
    };
    this.#checkouts.set(id, checkout);
    return checkout;
  }

  find(id: string): Checkout | undefined {
    return this.#checkouts.get(id);
  }

  findByPayment(paymentId: string): Checkout | undefined {
    return [...this.#checkouts.values()].find((checkout) => checkout.paymentId === paymentId);
  }

  /** The buyer has opened the page. */
  start(checkout: Checkout): Checkout {
    return checkout.status === 'created' ? this.#store({ ...checkout, status: 'started' }) : checkout;
  }

  /** @returns undefined where it is paid already. */
  pay(checkout: Checkout): Checkout | undefined {
    if (checkout.status === 'completed') return undefined;
    this.#paidAt.set(checkout.id, this.#clock.now());
    return this.#store({ ...checkout, status: 'completed', paymentId: createId('p') });
  }

  paidAt(checkout: Checkout): Date | undefined {
    return this.#paidAt.get(checkout.id);
  }

  /** What is neither refunded nor about to be, in cents. */
  leftOf({ id, amount, status }: Checkout): number {
    const taken = this.refundsOf(id).filter((refund) => refund.status !== 'failed');
    return status === 'completed' ? taken.reduce((left, refund) => left - refund.amount, amount) : 0;
  }

  refundsOf(checkoutId: string): readonly Refund[] {
    return [...this.#refunds.values()].filter((refund) => refund.checkoutId === checkoutId);
  }

  /** Takes the amount, so that no other refund gets it; it is to be at most {@link leftOf}. */
  refund(checkout: Checkout, amount: number, metadata: Readonly<Record<string, string>>): Refund {
    const refund = { id: createId('rfd'), checkoutId: checkout.id, amount, status: 'pending', metadata } as const;
    this.#refunds.set(refund.id, refund);
    return refund;
  }

  endRefund(refund: Refund, status: 'succeeded' | 'failed'): Refund {
    const ended = { ...refund, status };
    this.#refunds.set(refund.id, ended);
    return ended;
  }

  render(): unknown {
    return { checkouts: [...this.#checkouts.values()], refunds: [...this.#refunds.values()] };
  }

  clear(): void {
    for (const kept of [this.#checkouts, this.#refunds, this.#paidAt]) kept.clear();
  }

  #store(checkout: Checkout): Checkout {
    this.#checkouts.set(checkout.id, checkout);
    return checkout;
  }
}

/** An id as Yoco makes them, such as `ch_…`. */
export function createId(prefix: string): string {
  return `${prefix}_${randomUUID().replaceAll('-', '')}`;
}
