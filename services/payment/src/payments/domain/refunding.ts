import { paymentError } from '../../domain/errors.ts';
import type { Owner } from '../../domain/owner.ts';
import { isRefundable } from '../../domain/payment-states.ts';
import type { ProviderName } from '../../domain/ports.ts';
import { isOpenRefund, refundable } from '../../domain/refunds.ts';
import type { ChangeSource } from './changes.ts';
import { createRefundCalls, type RefundingDeps } from './refund-calls.ts';
import type { NewRefund, Refund, RefundFact } from './refunds.ts';
import { notConfigured } from './take.ts';

interface RefundOrder extends NewRefund {
  readonly owner: Owner;
}

interface RefundResolution {
  readonly paymentId: string;
  readonly refundId: string;
  readonly owner: Owner;
  readonly outcome: 'succeeded' | 'failed';
  /** In the words of who decides. */
  readonly reason: string;
  /** Who decides, where that is not whose payment it is. */
  readonly actor: string | undefined;
}

/** How money goes back. */
export interface Refunding {
  /**
   * Refunds all or a part of a payment, once for each id. What a provider does not say at once is
   * `pending` or `processing`, and ends later.
   *
   * @returns undefined where there is no such payment of the owner.
   * @throws ServiceError REFUND_EXCEEDS_PAYMENT, CONFLICT, REFUND_REFUSED, PROVIDER_NOT_CONFIGURED.
   */
  refund(order: RefundOrder): Promise<Refund | undefined>;
  /**
   * Ends a refund that is in review. To ask for it again changes nothing.
   *
   * @returns undefined where there is no such refund of a payment of the owner.
   * @throws ServiceError CONFLICT where it is in no review, and did not end so.
   */
  resolve(resolution: RefundResolution): Promise<Refund | undefined>;
  /** Goes on with a refund that is due. */
  work(id: string): Promise<void>;
  /** @returns the payment of the refund; undefined: none was made here. */
  settle(told: {
    readonly provider: ProviderName;
    readonly fact: RefundFact;
    readonly source: ChangeSource;
  }): Promise<string | undefined>;
}

/** The way that money goes back: reserved first, then the provider is called, without a lock (case A12). */
export function createRefunding(deps: RefundingDeps): Refunding {
  const { refunds, payments, providers } = deps;
  const calls = createRefundCalls(deps);

  async function refusal(paymentId: string) {
    const payment = await payments.find(paymentId, undefined);
    if (payment === undefined || !isRefundable(payment.state)) {
      return paymentError('CONFLICT', { details: { status: payment?.state } });
    }
    return paymentError('REFUND_EXCEEDS_PAYMENT', { details: { left: Number(refundable(payment.balance)) } });
  }

  return {
    async refund({ owner, ...order }) {
      const payment = await payments.find(order.paymentId, owner);
      if (payment === undefined) return undefined;
      const isReachable = providers.find(payment.provider) !== undefined;
      // One that was asked for before waits for the settings.
      if (!isReachable && (await refunds.find(order.id)) === undefined) throw notConfigured(providers);
      const reserved = await refunds.reserve(order);
      if (reserved === undefined) throw await refusal(order.paymentId);
      const refund = await calls.call(reserved);
      if (refund.state !== 'failed') return refund;
      throw paymentError('REFUND_REFUSED', { details: { reason: refund.failure, refundId: refund.id } });
    },
    async resolve({ paymentId, refundId, owner, outcome, reason, actor }) {
      const payment = await payments.find(paymentId, owner);
      const refund = payment === undefined ? undefined : await refunds.find(refundId);
      if (refund?.paymentId !== paymentId) return undefined;
      return refunds.change(refundId, ({ state, failure }) => {
        if (state === outcome) return undefined;
        const why = outcome === 'failed' ? failure : undefined;
        return { event: `resolved_${outcome}`, source: 'caller', resolution: reason, failure: why, actor };
      });
    },
    async work(id) {
      const refund = await refunds.find(id);
      if (refund !== undefined && isOpenRefund(refund.state)) await calls.goOn(refund);
    },
    async settle({ provider, fact, source }) {
      const id = await refunds.match(provider, fact);
      if (id === undefined) return undefined;
      return (await calls.settle(id, fact, source)).paymentId;
    },
  };
}
