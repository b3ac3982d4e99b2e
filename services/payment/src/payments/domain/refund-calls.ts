import type { Clock } from '@rollcall/platform/clock.ts';
import { type LookUpDecision, planAfterNothing, planLookUp } from '../../domain/lookups.ts';
import type { Lookup, Outcome, PaymentProvider, Refund as ProviderRefund, RefundRequest } from '../../domain/ports.ts';
import { isOpenRefund } from '../../domain/refunds.ts';
import type { ChangeSource } from './changes.ts';
import type { Payment, PaymentStore } from './payments.ts';
import type { Refund, RefundFact, RefundStore } from './refunds.ts';
import type { Providers } from './take.ts';

export interface RefundingDeps {
  readonly refunds: RefundStore;
  readonly payments: PaymentStore;
  readonly providers: Providers;
  readonly clock: Clock;
}

/** What is asked of providers for refunds. */
interface RefundCalls {
  /** Asks the provider for it, where nobody has. */
  call(refund: Refund): Promise<Refund>;
  /** Goes on with one that is due: it is called, looked up, or left to a person. */
  goOn(refund: Refund): Promise<void>;
  /** Takes what the provider says of it. */
  settle(id: string, fact: RefundFact, source: ChangeSource): Promise<Refund>;
}

const RETRY_MS = 30_000;
/** A provider that cannot be reached for so long will not do it. */
const GIVE_UP_MS = 72 * 3_600_000;

export function createRefundCalls(deps: RefundingDeps): RefundCalls {
  const { refunds, clock } = deps;
  const after = (ms: number) => new Date(clock.now().getTime() + ms);
  const isLate = ({ createdAt }: Refund) => clock.now().getTime() - createdAt.getTime() > GIVE_UP_MS;
  const latest = async (refund: Refund): Promise<Refund> => (await refunds.find(refund.id)) ?? refund;

  async function call(refund: Refund): Promise<Refund> {
    return refund.calledAt === undefined ? makeCall(refund) : latest(refund);
  }

  /** The first call, or one more: who began it before has been, or is, told by another. */
  async function makeCall(refund: Refund): Promise<Refund> {
    const { provider, payment } = await partiesOf(deps, refund);
    // Its settings may come back.
    if (provider === undefined) return isLate(refund) ? refunds.change(refund.id, failsOpen(NOT_REACHED)) : refund;
    const isKeyed = provider.repeatable.has('refund');
    const begun = await refunds.beginCall(refund, { isKeyed });
    if (begun === undefined) return latest(refund);
    const outcome = await provider.refund(requestOf(begun, payment));
    // Where sums tell, it is called again once the call before surely had no effect.
    const isEarlierOpen = isKeyed && refund.calledAt !== undefined;
    return outcome.outcome === 'failed' && isEarlierOpen ? latest(begun) : settleOutcome(begun, outcome);
  }

  async function settleOutcome(refund: Refund, outcome: Outcome<ProviderRefund>): Promise<Refund> {
    const { id } = refund;
    if (outcome.outcome === 'accepted') {
      const { refundRef, isSettled } = outcome.value;
      const event = isSettled ? 'succeeded' : 'submitted';
      return refunds.change(id, () => ({ event, source: 'provider', refundRef, isAccepted: true }));
    }
    const failure = outcome.reason;
    const fail = () => refunds.change(id, failsOpen({ source: 'provider', failure }));
    if (outcome.outcome === 'refused') return fail();
    if (outcome.outcome === 'unknown') return refunds.change(id, () => ({ event: 'submitted', source: 'provider' }));
    if (isLate(refund)) return fail();
    await refunds.withdrawCall(id, after(outcome.retryAfterMs ?? RETRY_MS));
    return latest(refund);
  }

  async function lookUp(refund: Refund): Promise<void> {
    const { id } = refund;
    const { provider, payment } = await partiesOf(deps, refund);
    const found: Lookup = (await provider?.lookUpRefund(requestOf(refund, payment))) ?? { found: 'unknown' };
    const lookedUp = { ...refund, lookUps: refund.lookUps + 1, lastLookUpAt: clock.now() };
    const soonest = found.found === 'unknown' ? after(found.retryAfterMs ?? 0) : clock.now();
    const next = nextLookUp(lookedUp, clock.now());
    await refunds.putOff(id, next < soonest ? soonest : next, true);
    if (found.found === 'facts') {
      for (const fact of found.facts) if ('refund' in fact) await settleRefund(deps, id, { fact, source: 'lookup' });
      return;
    }
    if (found.found === 'open') {
      await refunds.change(id, () => ({ event: 'submitted', source: 'lookup', isAccepted: true }));
      return;
    }
    if (refund.acceptedAt !== undefined) return;
    const { calls, calledAt = refund.createdAt } = refund;
    const isKeyed = provider?.repeatable.has('refund') === true;
    const step = planAfterNothing(
      { found: found.found, calls, isKeyed, since: instant(calledAt) },
      instant(clock.now()),
    );
    if (step === 'call') await makeCall(refund);
    if (step === 'fail') await refunds.change(id, failsOpen({ source: 'lookup', failure: 'not_made' }));
  }

  return {
    call,
    settle: (id, fact, source) => settleRefund(deps, id, { fact, source }),
    async goOn(refund) {
      const { id } = refund;
      if (refund.calledAt === undefined) {
        const called = await call(refund);
        // Another one of the payment is under way.
        const isWaiting = called.calledAt === undefined && isOpenRefund(called.state);
        if (isWaiting) await refunds.putOff(id, after(RETRY_MS), false);
        return;
      }
      const plan = planOf(refund, clock.now());
      if (plan.kind === 'look_up') await lookUp(refund);
      else if (plan.kind === 'wait') await refunds.putOff(id, new Date(plan.until.epochMilliseconds), false);
      else await refunds.change(id, givesUp(clock.now()));
    },
  };
}

/** It may have been told meanwhile. */
function givesUp(now: Date): Parameters<RefundStore['change']>[1] {
  return (refund) =>
    planOf(refund, now).kind === 'give_up'
      ? { event: 'unclear', source: 'schedule', failure: 'outcome_unknown' }
      : undefined;
}

interface Failure {
  readonly source: ChangeSource;
  readonly failure: string;
}

const NOT_REACHED: Failure = { source: 'schedule', failure: 'unreachable' };

/** What is over already has been told by another. */
function failsOpen({ source, failure }: Failure): Parameters<RefundStore['change']>[1] {
  return ({ state, acceptedAt }) =>
    isOpenRefund(state) && acceptedAt === undefined ? { event: 'failed', source, failure } : undefined;
}

function planOf({ calledAt, acceptedAt, lookUps, lastLookUpAt }: Refund, now: Date): LookUpDecision {
  const since = instant(calledAt ?? now);
  const lastLookUp = lastLookUpAt === undefined ? undefined : instant(lastLookUpAt);
  const isAccepted = acceptedAt !== undefined;
  return planLookUp({ since, lookUps, lastLookUpAt: lastLookUp, isAccepted }, instant(now));
}

function nextLookUp(refund: Refund, now: Date): Date {
  const plan = planOf(refund, now);
  return plan.kind === 'wait' ? new Date(plan.until.epochMilliseconds) : now;
}

interface Parties {
  /** Undefined: it has no settings any more. */
  readonly provider: PaymentProvider | undefined;
  readonly payment: Payment;
}

async function partiesOf({ payments, providers }: RefundingDeps, refund: Refund): Promise<Parties> {
  const payment = await payments.find(refund.paymentId, undefined);
  if (payment === undefined) throw new Error('The payment of the refund is gone');
  return { provider: providers.find(payment.provider), payment };
}

async function settleRefund(
  { refunds }: RefundingDeps,
  id: string,
  { fact, source }: { readonly fact: RefundFact; readonly source: ChangeSource },
): Promise<Refund> {
  return refunds.change(id, ({ money, decision }) => {
    // A person has found out.
    if (decision !== undefined) return undefined;
    const isSame = fact.money.amount === money.amount && fact.money.currency === money.currency;
    if (!isSame) return { event: 'unclear', source, failure: 'wrong_amount' };
    const { refundRef } = fact.refund;
    if (fact.kind === 'refund.succeeded') return { event: 'succeeded', source, refundRef, isAccepted: true };
    return { event: 'failed', source, refundRef, failure: 'not_refundable' };
  });
}

/** Pure. What the provider is asked for. */
function requestOf(refund: Refund, { money, balance, chargeRef, checkoutRef }: Payment): RefundRequest {
  const { id, paymentId, reason, refundRef, refundedBefore, calledAt, createdAt } = refund;
  return {
    refundId: id,
    paymentId,
    attempt: 1,
    money: { amount: refund.money.amount, currency: money.currency },
    paid: balance.captured,
    refundedBefore,
    calledAt: calledAt ?? createdAt,
    reason,
    chargeRef: chargeRef ?? '',
    ...(checkoutRef === undefined ? {} : { checkoutRef }),
    ...(refundRef === undefined ? {} : { refundRef }),
  };
}

function instant(date: Date): Temporal.Instant {
  return Temporal.Instant.fromEpochMilliseconds(date.getTime());
}
