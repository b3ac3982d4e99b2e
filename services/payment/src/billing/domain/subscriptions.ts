import type { ListPage, NewestPage } from '@rollcall/platform/lists.ts';
import type { Owner } from '../../domain/owner.ts';
import type { ProviderName } from '../../domain/ports.ts';
import type { Subscription } from '../../domain/subscriptions.ts';

/** A subscription as it is kept. */
export interface SubscriptionRecord {
  readonly subject: string;
  readonly customerId: string;
  readonly planId: string;
  readonly planVersion: number;
  /** That is to come: `pendingPlan` of the subscription. */
  readonly pending: PlanVersion | undefined;
  /** Who charges. Undefined: the payer of an invoice chooses. */
  readonly provider: ProviderName | undefined;
  /** That is charged; the newest of the customer at the provider where undefined. */
  readonly methodId: string | undefined;
  /** By which the provider learns how to charge, where nothing is to be paid at first. */
  readonly setupPaymentId: string | undefined;
  /** The first day after the trial. */
  readonly trialEnd: Temporal.PlainDate | undefined;
  /** Of the one invoice that is not paid. */
  readonly openInvoiceId: string | undefined;
  /** Of the charge of it whose outcome is open. */
  readonly openPaymentId: string | undefined;
  /** Whether that charge is up to the payer. */
  readonly isByCheckout: boolean;
  /** Of who made it: kept, and given back to them alone. */
  readonly metadata: Readonly<Record<string, string>>;
  readonly cancelledAt: Date | undefined;
  readonly subscription: Subscription;
}

interface SubscriptionQuery {
  readonly owner: Owner;
  readonly customerId: string | undefined;
  readonly state: Subscription['state'] | undefined;
  readonly page: ListPage;
}

/** What is to be done next. */
export type NextStep =
  /** Nothing: the store knows when it is looked at again. */
  | { readonly kind: 'wait' }
  /** There may be more to do at once. */
  | { readonly kind: 'more' }
  /** The charge that has begun is made by its id, or made sure of. */
  | {
      readonly kind: 'charge';
      readonly paymentId: string;
      readonly invoiceId: string;
      readonly record: SubscriptionRecord;
    };

/** How a charge ended of which no payment tells: `withdrawn` is as if it had not begun. */
export interface ChargeEnd {
  readonly paymentId: string;
  readonly outcome: 'failed' | 'withdrawn';
  /** A word for programs. */
  readonly reason: string;
}

export interface SubscriptionStore {
  /** Makes it, or finds the one that has the id. */
  create(record: SubscriptionRecord): Promise<SubscriptionRecord>;
  find(id: string, owner: Owner): Promise<SubscriptionRecord | undefined>;
  list(query: SubscriptionQuery): Promise<NewestPage<SubscriptionRecord>>;
  /**
   * What it becomes is said by `decide`, while nobody else changes it; undefined where there is
   * none.
   */
  change(
    id: string,
    owner: Owner,
    decide: (record: SubscriptionRecord) => SubscriptionRecord,
  ): Promise<SubscriptionRecord | undefined>;
  /** Another plan, with the credit note that it makes. */
  changePlan(id: string, owner: Owner, plan: PlanChoice): Promise<SubscriptionRecord | undefined>;
  /** Plans what is to be done now, and does it in one transaction. */
  step(id: string): Promise<NextStep>;
  /** Ends it now, with the first invoice of what never began; undefined where there is none. */
  cancel(id: string, owner: Owner): Promise<SubscriptionRecord | undefined>;
  /** Nothing where another charge has begun since. */
  endCharge(id: string, end: ChargeEnd): Promise<void>;
  /** It is looked at again so much later. */
  putOff(id: string, ms: number): Promise<void>;
}

interface PlanVersion {
  readonly planId: string;
  readonly planVersion: number;
}

export interface PlanChoice extends PlanVersion {
  readonly plan: Subscription['plan'];
}
