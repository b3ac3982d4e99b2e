import { randomInt, randomUUID } from 'node:crypto';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { Order } from './order.ts';
import { changeSubscription, createSubscription, type Subscription, type SubscriptionChange } from './subscriptions.ts';

export interface Payment {
  readonly pfPaymentId: string;
  /** In cents. */
  readonly amount: bigint;
  readonly paidAt: Date;
  readonly token: string | undefined;
  readonly fields: ReadonlyMap<string, string>;
  readonly refunds: readonly Refund[];
}

interface Refund {
  /** In cents. */
  readonly amount: bigint;
  readonly at: Date;
}

/** A form that was accepted, and what became of it. */
export interface Visit {
  readonly id: string;
  readonly order: Order;
  readonly state: 'open' | 'paid' | 'cancelled';
}

export interface Billed {
  readonly subscription: Subscription;
  /** Of the form by which it began. */
  readonly fields: ReadonlyMap<string, string>;
}

/** What an adhoc call charges. Its amount is in cents. */
export interface Charge {
  readonly amount: bigint;
  readonly fields: ReadonlyMap<string, string>;
}

/** What PayFast knows of one merchant. It is kept in memory, and lost when the process ends. */
export class Account {
  readonly #clock: Clock;
  readonly #visits = new Map<string, Visit>();
  readonly #payments = new Map<string, Payment>();
  readonly #billed = new Map<string, Billed>();
  #lastPaymentId = randomInt(1_000_000, 2_000_000);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Today in South Africa, YYYY-MM-DD. */
  get today(): string {
    return southAfricanTime(this.#clock.now()).slice(0, 10);
  }

  open(order: Order): Visit {
    const visit = { id: randomUUID(), order, state: 'open' } as const;
    this.#visits.set(visit.id, visit);
    return visit;
  }

  findVisit(id: string): Visit | undefined {
    return this.#visits.get(id);
  }

  /** The buyer went back. */
  cancelVisit(visit: Visit): void {
    this.#visits.set(visit.id, { ...visit, state: 'cancelled' });
  }

  /** The buyer paid: a payment, and a token where the form asked for one. */
  pay(visit: Visit): Payment {
    const { order } = visit;
    this.#visits.set(visit.id, { ...visit, state: 'paid' });
    const token = order.subscription === undefined ? undefined : randomUUID();
    if (token !== undefined && order.subscription !== undefined) {
      const created = createSubscription(token, order.subscription, this.today);
      const subscription = order.amount === 0n ? created : (changeSubscription(created, { type: 'paid' }) ?? created);
      this.#billed.set(token, { subscription, fields: order.fields });
    }
    return this.#take({ amount: order.amount, token, fields: order.fields });
  }

  /** @returns undefined where the token's status does not allow it. */
  charge(billed: Billed, { amount, fields }: Charge): Payment | undefined {
    const { token } = billed.subscription;
    if (this.change(billed, { type: 'paid' }) === undefined) return undefined;
    return this.#take({ amount, token, fields: new Map([...billed.fields, ...fields]) });
  }

  /** @returns undefined where the token's status does not allow the change. */
  change(billed: Billed, change: SubscriptionChange): Billed | undefined {
    const subscription = changeSubscription(billed.subscription, change);
    if (subscription === undefined) return undefined;
    const changed = { ...billed, subscription };
    this.#billed.set(subscription.token, changed);
    return changed;
  }

  findBilled(token: string): Billed | undefined {
    return this.#billed.get(token);
  }

  findPayment(pfPaymentId: string): Payment | undefined {
    return this.#payments.get(pfPaymentId);
  }

  /** Oldest first. */
  get payments(): readonly Payment[] {
    return [...this.#payments.values()];
  }

  /** @returns false where so much is not left. */
  refund(payment: Payment, amount: bigint): boolean {
    if (amount < 1n || amount > leftOf(payment)) return false;
    const refunds = [...payment.refunds, { amount, at: this.#clock.now() }];
    this.#payments.set(payment.pfPaymentId, { ...payment, refunds });
    return true;
  }

  /** What a test may look at. */
  render(): unknown {
    const payments = this.payments.map((payment) => ({
      ...payment,
      amount: Number(payment.amount),
      fields: Object.fromEntries(payment.fields),
      refunds: payment.refunds.map(({ amount, at }) => ({ amount: Number(amount), at })),
    }));
    const subscriptions = [...this.#billed.values()].map(({ subscription }) => ({
      ...subscription,
      amount: Number(subscription.amount),
    }));
    return { payments, subscriptions };
  }

  clear(): void {
    for (const kept of [this.#visits, this.#payments, this.#billed]) kept.clear();
  }

  #take({ amount, token, fields }: Pick<Payment, 'amount' | 'token' | 'fields'>): Payment {
    this.#lastPaymentId += 1;
    const pfPaymentId = String(this.#lastPaymentId);
    const payment = { pfPaymentId, amount, token, fields, paidAt: this.#clock.now(), refunds: [] };
    this.#payments.set(pfPaymentId, payment);
    return payment;
  }
}

/** What may still be refunded, in cents. */
export function leftOf({ amount, refunds }: Payment): bigint {
  return refunds.reduce((left, refund) => left - refund.amount, amount);
}

/** YYYY-MM-DD HH:MM:SS in South Africa, which PayFast writes everywhere. */
export function southAfricanTime(at: Date): string {
  const local = Temporal.Instant.fromEpochMilliseconds(at.getTime()).toZonedDateTimeISO('Africa/Johannesburg');
  return local.toPlainDateTime().toString({ smallestUnit: 'second' }).replace('T', ' ');
}
