import type { ListPage, NewestPage } from '@rollcall/platform/lists.ts';
import type { Owner } from '../../domain/owner.ts';
import type { PaymentState } from '../../domain/payment-states.ts';
import type {
  CheckoutPurpose,
  Money,
  PaymentReference,
  ProviderName,
  Redirect,
  StoredMethod,
} from '../../domain/ports.ts';
import type { PaymentBalance } from '../../domain/refunds.ts';
import type { PaymentChange } from './changes.ts';

/** What a payment is made of. */
export interface PaymentTerms {
  readonly id: string;
  readonly subject: string;
  readonly provider: ProviderName;
  /** `charge`: of a stored method, without the payer. */
  readonly purpose: CheckoutPurpose | 'charge';
  /** 0 where the method alone is kept. */
  readonly money: Money;
  readonly customerEmail: string;
  readonly itemName: string;
  /** Of the caller; kept and given back as it came. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The page of the shop that the payer may go back to. */
  readonly returnUrl?: string | undefined;
  /** Of a `charge`. A secret. */
  readonly method?: StoredMethod | undefined;
  readonly customerId?: string | undefined;
  /** It is for an invoice, which is a sale since it was issued. */
  readonly invoiceId?: string | undefined;
}

/** A payment as it is kept. */
export interface Payment extends PaymentTerms {
  readonly state: PaymentState;
  /** Why it failed, or is in review: a word for programs. */
  readonly reason: string | undefined;
  readonly balance: PaymentBalance;
  /** Opens our pages of it. A secret. */
  readonly pageToken: string;
  /** Where the payer goes; undefined until the provider has the checkout. */
  readonly redirect: Redirect | undefined;
  readonly checkoutRef: string | undefined;
  /** Of the charge that refunds are of. */
  readonly chargeRef: string | undefined;
  /** When the provider was called; undefined: it surely has not been. */
  readonly calledAt: Date | undefined;
  /** When the provider said that it works on it. */
  readonly processingAt: Date | undefined;
  /** The last one; undefined: none, or it is in review again. */
  readonly decision: Decision | undefined;
  readonly lookUps: number;
  readonly lastLookUpAt: Date | undefined;
  /** Who has not paid by then cannot any more. */
  readonly expiresAt: Date;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  /** Since then it has nothing of its payer. */
  readonly erasedAt?: Date | undefined;
}

/** Money that a provider says it took. */
export interface KnownCharge {
  readonly chargeRef: string;
  readonly money: Money;
  readonly fee: bigint | undefined;
  /** Whether it is in the balance and in the ledger. */
  readonly isBooked: boolean;
  /** A person found out that it never was. */
  readonly isDismissed: boolean;
}

/** Money that a provider says it gave back, and not by us. */
export interface KnownReturn {
  readonly refundRef: string;
  readonly money: Money;
  /** Whether it is in the balance and in the ledger. */
  readonly isBooked: boolean;
  /** A person found out that it never was. */
  readonly isDismissed: boolean;
}

/** What a payer disputes at the bank. */
export interface KnownDispute {
  readonly disputeRef: string;
  readonly money: Money;
  readonly state: 'open' | 'won' | 'lost';
  /** In minor units: what of a lost one is in the balance as given back. */
  readonly counted: bigint;
}

/** What a person found out of a payment in review. */
export type Decision = 'paid' | 'unpaid' | 'refunded' | 'dismissed';

/** What is known of a payment when something happens to it. */
export interface Snapshot {
  readonly payment: Payment;
  readonly charges: readonly KnownCharge[];
  readonly returns: readonly KnownReturn[];
  readonly disputes: readonly KnownDispute[];
}

/** One line of the history. */
export interface PaymentHistoryEntry {
  readonly at: Date;
  readonly event: string;
  readonly source: string;
  readonly from: string | null;
  readonly to: string;
  readonly reason: string | null;
  /** Who asked for it, where that is not whose payment it is. */
  readonly actor: string | null;
  /** In the words of who decided. */
  readonly note: string | null;
}

interface PaymentQuery {
  readonly owner: Owner;
  readonly status: PaymentState | undefined;
  readonly provider: ProviderName | undefined;
  /** Whatever its capitals. */
  readonly customerEmail: string | undefined;
  /** Of billing. */
  readonly customerId: string | undefined;
  readonly invoiceId: string | undefined;
  readonly page: ListPage;
}

/** Where payments are kept. */
export interface PaymentStore {
  /** Makes it, or finds the one that has the id. */
  create(terms: PaymentTerms, expiresAt: Date): Promise<Payment>;
  find(id: string, owner: Owner): Promise<Payment | undefined>;
  findByPageToken(token: string): Promise<Payment | undefined>;
  list(query: PaymentQuery): Promise<NewestPage<Payment>>;
  /** Those of each customer, the newest first. @param limit of one customer. */
  newestOf(
    customerIds: readonly string[],
    owner: Owner,
    limit: number,
  ): Promise<ReadonlyMap<string, readonly Payment[]>>;
  /** What happened to each of them, the oldest first. */
  histories(ids: readonly string[]): Promise<ReadonlyMap<string, readonly PaymentHistoryEntry[]>>;
  /**
   * Writes down that the provider is called.
   *
   * @returns false where it was already, or the payment is not open any more.
   */
  beginCall(id: string): Promise<boolean>;
  /**
   * The provider surely has not done it: it may be called again.
   *
   * @param againMs after which time that is done here; undefined: whoever wants it does so.
   */
  withdrawCall(id: string, againMs?: number): Promise<void>;
  /**
   * Changes a payment in one transaction with its history, the ledger and the events.
   *
   * @param decide pure; undefined: nothing is to be changed.
   * @throws ServiceError CONFLICT where somebody asks for what its state refuses.
   */
  change(id: string, decide: (snapshot: Snapshot) => PaymentChange | undefined): Promise<Payment>;
  /**
   * The payment that a provider speaks of. A charge of a stored method that has no reference yet is
   * found by the method: the provider may name an older payment of it (case A16).
   *
   * @returns its id; undefined: none, or it cannot be told which.
   */
  match(provider: ProviderName, reference: PaymentReference): Promise<string | undefined>;
  /** Keeps when it was looked up, and says when the next time is. @param retryAfterMs not before that. */
  lookedUp(id: string, retryAfterMs?: number): Promise<void>;
  /** The payer has come back: what became of it is looked up soon, but not more often than each ten seconds. */
  hurry(id: string): Promise<boolean>;
}
