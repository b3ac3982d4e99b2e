import type { ListPage, NewestPage } from '@rollcall/platform/lists.ts';
import type { Owner } from '../../domain/owner.ts';
import type { Money, ProviderFact, ProviderName } from '../../domain/ports.ts';
import type { RefundEvent, RefundState } from '../../domain/refunds.ts';
import type { ChangeSource } from './changes.ts';

/** A fact about a refund. */
export type RefundFact = Extract<ProviderFact, { readonly refund: unknown }>;

/** A refund as it is kept. */
export interface Refund {
  readonly id: string;
  readonly paymentId: string;
  readonly subject: string;
  readonly money: Money;
  readonly state: RefundState;
  /** Why it failed, or is in review: a word for programs. */
  readonly failure: string | undefined;
  /** In the words of who asked for it. */
  readonly reason: string;
  /** In the words of who decided on it. */
  readonly resolution: string | undefined;
  /** Of a person; undefined: none has. */
  readonly decision: 'succeeded' | 'failed' | undefined;
  readonly refundRef: string | undefined;
  /** Of the first call that may have been taken; undefined: surely none was. */
  readonly calledAt: Date | undefined;
  /** How often the provider was called, but for calls that surely were not taken. */
  readonly calls: number;
  readonly acceptedAt: Date | undefined;
  /** Of the payment, by refunds that were over when the provider was called. */
  readonly refundedBefore: bigint;
  readonly lookUps: number;
  readonly lastLookUpAt: Date | undefined;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** Something that happened to a refund. */
export interface RefundChange {
  readonly event: RefundEvent;
  readonly source: ChangeSource;
  readonly failure?: string | undefined;
  readonly refundRef?: string | undefined;
  /** The provider says that it has it, whether or not it is over. */
  readonly isAccepted?: boolean;
  /** Who asked for it, where that is not whose refund it is. */
  readonly actor?: string | undefined;
  /** In the words of who decides. */
  readonly resolution?: string | undefined;
}

export interface NewRefund {
  readonly id: string;
  readonly paymentId: string;
  /** All that is left where undefined. */
  readonly amount: bigint | undefined;
  readonly reason: string;
  /** Who asks for it, where that is not whose payment it is. */
  readonly actor: string | undefined;
}

interface RefundQuery {
  readonly owner: Owner;
  /** Of all payments where undefined. */
  readonly paymentId: string | undefined;
  readonly status: RefundState | undefined;
  readonly page: ListPage;
}

/** Where refunds are kept. */
export interface RefundStore {
  /**
   * Reserves the amount of the payment by one guarded update, and keeps the refund; or finds the one
   * that has the id.
   *
   * @returns undefined where the payment has not so much left, or may not be refunded now.
   */
  reserve(refund: NewRefund): Promise<Refund | undefined>;
  find(id: string): Promise<Refund | undefined>;
  /** Newest first. */
  list(query: RefundQuery): Promise<NewestPage<Refund>>;
  /**
   * Writes down that the provider is called, for the first time or again. Of a payment one refund at
   * a time has an outcome that is not known.
   *
   * @param refund as it was when it was decided to call.
   * @param call whether the provider knows our key: the time of the first call stays then.
   * @returns undefined where it is not as it was, or another one is under way.
   */
  beginCall(refund: Refund, call: { readonly isKeyed: boolean }): Promise<Refund | undefined>;
  /** The provider surely has not done it: it is called again later. */
  withdrawCall(id: string, retryAt: Date): Promise<void>;
  /**
   * Changes a refund in one transaction with its payment, the history, the ledger and the events.
   *
   * @throws ServiceError CONFLICT where somebody asks for what its state refuses.
   */
  change(id: string, decide: (refund: Refund) => RefundChange | undefined): Promise<Refund>;
  /** By the references of a provider, the most exact first. */
  match(provider: ProviderName, fact: RefundFact): Promise<string | undefined>;
  /** When the worker comes back. */
  putOff(id: string, until: Date, wasLookedUp: boolean): Promise<void>;
}
