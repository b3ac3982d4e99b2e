import type { Clock } from '@rollcall/platform/clock.ts';
import { type LookUpDecision, planLookUp } from '../../domain/lookups.ts';
import type { Outcome, PaymentProvider, Refund as ProviderRefund, RefundRequest } from '../../domain/ports.ts';
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
  settle(id: string, fact: RefundFact, source: ChangeSource): Promise<void>;
}

const RETRY_MS = 30_000;
/** A provider that cannot be reached for so long will not do it. */
const GIVE_UP_MS = 72 * 3_600_000;
/** Providers that know our keys do so for a day. */
const REPEATABLE_MS = 23 * 3_600_000;

export function createRefundCalls(deps: RefundingDeps): RefundCalls {
  const { refunds, clock } = deps;
  const after = (ms: number) => new Date(clock.now().getTime() + ms);
  const latest = async (refund: Refund): Promise<Refund> => (await refunds.find(refund.id)) ?? refund;

  async function call(refund: Refund): Promise<Refund> {
    const begun = await refunds.beginCall(refund.id);
    if (begun === undefined) return latest(refund);
    const { provider, request } = await questionOf(deps, begun);
    return settleOutcome(begun, await provider.refund(request));
  }

  async function settleOutcome(refund: Refund, outcome: Outcome<ProviderRefund>): Promise<Refund> {
    const { id, createdAt } = refund;
    if (outcome.outcome === 'accepted') {
      const { refundRef, isSettled } = outcome.value;
      const event = isSettled ? 'succeeded' : 'submitted';
      return refunds.change(id, () => ({ event, source: 'provider', refundRef, isAccepted: true }));
    }
    const failure = outcome.reason;
    if (outcome.outcome === 'refused')
      return refunds.change(id, () => ({ event: 'failed', source: 'provider', failure }));
    if (outcome.outcome === 'unknown') return refunds.change(id, () => ({ event: 'submitted', source: 'provider' }));
    if (clock.now().getTime() - createdAt.getTime() > GIVE_UP_MS) {
      return refunds.change(id, () => ({ event: 'failed', source: 'provider', failure }));
    }
    await refunds.withdrawCall(id, after(outcome.retryAfterMs ?? RETRY_MS));
    return latest(refund);
  }

  async function lookUp(refund: Refund): Promise<void> {
    const { provider, request } = await questionOf(deps, refund);
    const found = await provider.lookUpRefund(request);
    if (found.found === 'facts') {
      for (const fact of found.facts)
        if ('refund' in fact) await settleRefund(deps, refund.id, { fact, source: 'lookup' });
    } else if (found.found === 'absent' && refund.acceptedAt === undefined) {
      await refunds.change(refund.id, () => ({ event: 'failed', source: 'lookup', failure: 'not_made' }));
    } else if (isRepeatable(provider, refund, clock.now())) {
      await settleOutcome(refund, await provider.refund(request));
    }
    const now = await latest(refund);
    if (now.state === 'pending' || now.state === 'processing') {
      await refunds.putOff(
        now.id,
        nextLookUp({ ...now, lookUps: now.lookUps + 1, lastLookUpAt: clock.now() }, clock.now()),
        true,
      );
    }
  }

  return {
    call,
    settle: (id, fact, source) => settleRefund(deps, id, { fact, source }),
    async goOn(refund) {
      const { id } = refund;
      if (refund.calledAt === undefined) {
        const called = await call(refund);
        // Another one of the payment is under way.
        const isWaiting = called.calledAt === undefined && called.state === 'pending';
        if (isWaiting) await refunds.putOff(id, after(RETRY_MS), false);
        return;
      }
      const plan = planOf(refund, clock.now());
      if (plan.kind === 'look_up') await lookUp(refund);
      else if (plan.kind === 'wait') await refunds.putOff(id, new Date(plan.until.epochMilliseconds), false);
      else await refunds.change(id, () => ({ event: 'unclear', source: 'schedule', failure: 'outcome_unknown' }));
    },
  };
}

function isRepeatable({ repeatable }: PaymentProvider, { calledAt, acceptedAt }: Refund, now: Date): boolean {
  const sinceMs = now.getTime() - (calledAt?.getTime() ?? 0);
  return repeatable.has('refund') && acceptedAt === undefined && sinceMs < REPEATABLE_MS;
}

function planOf({ calledAt, lookUps, lastLookUpAt }: Refund, now: Date): LookUpDecision {
  const since = instant(calledAt ?? now);
  const lastLookUp = lastLookUpAt === undefined ? undefined : instant(lastLookUpAt);
  return planLookUp({ since, lookUps, lastLookUpAt: lastLookUp }, instant(now));
}

function nextLookUp(refund: Refund, now: Date): Date {
  const plan = planOf(refund, now);
  return plan.kind === 'wait' ? new Date(plan.until.epochMilliseconds) : now;
}

interface Question {
  readonly provider: PaymentProvider;
  readonly request: RefundRequest;
}

async function questionOf({ payments, providers }: RefundingDeps, refund: Refund): Promise<Question> {
  const payment = await payments.find(refund.paymentId, undefined);
  const provider = payment === undefined ? undefined : providers.find(payment.provider);
  if (payment === undefined || provider === undefined) throw new Error('The provider of the refund has no settings');
  return { provider, request: requestOf(refund, payment) };
}

async function settleRefund(
  { refunds }: RefundingDeps,
  id: string,
  { fact, source }: { readonly fact: RefundFact; readonly source: ChangeSource },
): Promise<void> {
  await refunds.change(id, ({ money }) => {
    const isSame = fact.money.amount === money.amount && fact.money.currency === money.currency;
    if (!isSame) return { event: 'unclear', source, failure: 'wrong_amount' };
    const { refundRef } = fact.refund;
    if (fact.kind === 'refund.succeeded') return { event: 'succeeded', source, refundRef, isAccepted: true };
    return { event: 'failed', source, refundRef, failure: 'not_refundable' };
  });
}

/** Pure. What the provider is asked for. */
function requestOf(refund: Refund, { money, balance, chargeRef, checkoutRef }: Payment): RefundRequest {
  const { id, paymentId, reason, refundRef, refundedBefore } = refund;
  return {
    refundId: id,
    paymentId,
    attempt: 1,
    money: { amount: refund.money.amount, currency: money.currency },
    paid: balance.captured,
    refundedBefore,
    reason,
    chargeRef: chargeRef ?? '',
    ...(checkoutRef === undefined ? {} : { checkoutRef }),
    ...(refundRef === undefined ? {} : { refundRef }),
  };
}

function instant(date: Date): Temporal.Instant {
  return Temporal.Instant.fromEpochMilliseconds(date.getTime());
}
