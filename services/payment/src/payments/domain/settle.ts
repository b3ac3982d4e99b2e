import type { Clock } from '@rollcall/platform/clock.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import type { ProviderFact, ProviderName, StoredMethod } from '../../domain/ports.ts';
import type { ChangeSource } from './changes.ts';
import { changeOfFact, changeOfReturn } from './facts.ts';
import type { PaymentStore } from './payments.ts';
import type { Refunding } from './refunding.ts';
import type { RefundFact } from './refunds.ts';

/** A stored method is of no use any more. */
export type OnMethodCancelled = (provider: ProviderName, method: StoredMethod) => Promise<void>;

export interface SettlingDeps {
  readonly payments: PaymentStore;
  readonly refunding: Refunding;
  readonly onMethodCancelled: OnMethodCancelled;
  readonly clock: Clock;
  readonly log: Logger;
}

interface Told {
  readonly provider: ProviderName;
  readonly fact: ProviderFact;
  readonly source: ChangeSource;
}

/** What a fact was about. */
export interface Settled {
  /** Undefined: a method. */
  readonly paymentId: string | undefined;
}

/**
 * Takes what a provider says: by its notification, or when it was asked.
 *
 * @returns undefined: it is about nothing that is known here.
 */
export type Settle = (told: Told) => Promise<Settled | undefined>;

/** The one door by which facts move payments and refunds, whoever brings them (case A11). */
export function createSettling({ payments, refunding, onMethodCancelled, clock, log }: SettlingDeps): Settle {
  return async ({ provider, fact, source }) => {
    if (fact.kind === 'method.cancelled') {
      await onMethodCancelled(provider, { token: fact.token });
      return { paymentId: undefined };
    }
    if (isRefundFact(fact)) {
      const paymentId = await refunding.settle({ provider, fact, source });
      return paymentId === undefined ? reportForeignRefund({ provider, fact, source }) : { paymentId };
    }
    const id = await payments.match(provider, fact.payment);
    if (id === undefined) return undefined;
    const payment = await payments.change(id, (snapshot) => changeOfFact(snapshot, fact, { source, at: clock.now() }));
    if (payment.state === 'needs_review') log.warn({ paymentId: id, reason: payment.reason }, 'a payment is in review');
    return { paymentId: id };
  };

  /** A refund that was not made here: somebody made it at the provider's own page. */
  async function reportForeignRefund({ provider, fact, source }: Told & { readonly fact: RefundFact }) {
    const { chargeRef } = fact.refund;
    const id = chargeRef === undefined ? undefined : await payments.match(provider, { chargeRef });
    if (id === undefined) return undefined;
    await payments.change(id, (snapshot) => changeOfReturn(snapshot, fact, source));
    return { paymentId: id };
  }
}

function isRefundFact(fact: ProviderFact): fact is RefundFact {
  return fact.kind === 'refund.succeeded' || fact.kind === 'refund.failed';
}
