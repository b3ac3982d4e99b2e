import type { Clock } from '@rollcall/platform/clock.ts';
import { ServiceError } from '@rollcall/platform/errors.ts';
import { createDueWork, type DueWork, takeDueRows } from '@rollcall/platform/postgres/due-work.ts';
import type { Pool } from '@rollcall/platform/postgres/pool.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { planAfterNothing } from '../../domain/lookups.ts';
import { isSettled } from '../../domain/payment-states.ts';
import type { PaymentProvider, PaymentQuestion } from '../../domain/ports.ts';
import { type PaymentWork, planWork } from '../domain/due.ts';
import type { Payment, PaymentStore } from '../domain/payments.ts';
import type { Settle } from '../domain/settle.ts';
import type { Providers, Taking } from '../domain/take.ts';

/** Longer than a lookup takes, which may ask a provider several times. */
const LEASE_SECONDS = 60;
const AT_ONCE = 10;
/** Whose payers have come back: however many do, the others go on. */
const HURRIED_AT_ONCE = 3;

export interface PaymentWorkDeps {
  readonly pool: () => Pool;
  readonly payments: PaymentStore;
  readonly taking: Taking;
  readonly settle: Settle;
  readonly providers: Providers;
  readonly clock: Clock;
  readonly log: Logger;
}

interface DueRow {
  readonly id: string;
}

/** Settles what is not known of payments, and ends those that nobody pays: what is due, and whose payers came back. */
export function createPaymentWork(deps: PaymentWorkDeps): { readonly due: DueWork; readonly hurried: DueWork } {
  const { pool, payments, clock, log } = deps;
  /** It may not be so any more. */
  const isStill = (payment: Payment, kind: PaymentWork['kind']) => planWork(payment, clock.now()).kind === kind;

  async function work({ id }: DueRow): Promise<void> {
    const payment = await payments.find(id, undefined);
    if (payment === undefined) return;
    switch (planWork(payment, clock.now()).kind) {
      case 'call_again':
        await callAgain(deps, payment);
        break;
      case 'expire':
        await payments.change(id, (known) =>
          isStill(known.payment, 'expire') ? { event: 'expired', source: 'schedule' } : undefined,
        );
        break;
      case 'give_up':
        log.warn({ paymentId: id }, 'what became of a payment was not to be found out');
        await payments.change(id, (known) =>
          isStill(known.payment, 'give_up')
            ? { event: 'unclear', source: 'schedule', reason: 'outcome_unknown' }
            : undefined,
        );
        break;
      case 'look_up':
        await lookUp(deps, payment);
        break;
      case 'wait':
        // It is due before its time because its payer has come back.
        if (payment.checkoutRef !== undefined) await lookUp(deps, payment);
        else await payments.lookedUp(id);
        break;
      case 'nothing':
        await payments.lookedUp(id);
        break;
    }
  }

  const due = { table: 'payments', columns: 'id', leaseSeconds: LEASE_SECONDS };
  const worker = (name: string, where: string, concurrency: number) =>
    createDueWork<DueRow>({
      name,
      take: (limit) => takeDueRows<DueRow>({ ...due, pool: pool(), where, limit }),
      work,
      concurrency,
      log,
    });
  return {
    due: worker('payments', 'NOT is_hurried', AT_ONCE),
    hurried: worker('payments of payers who came back', 'is_hurried', HURRIED_AT_ONCE),
  };
}

/** A refusal is written down already; a provider that is not reached is asked later. */
async function callAgain({ taking, payments }: PaymentWorkDeps, payment: Payment): Promise<void> {
  let retryAfterSeconds = 0;
  try {
    await taking.makeCheckout(payment);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    retryAfterSeconds = Number(error.headers['retry-after'] ?? 0);
  }
  await payments.lookedUp(payment.id, retryAfterSeconds * 1000);
}

/** A payment of which a lookup has found nothing, and that nobody told of meanwhile. */
function isUntold({ state, chargeRef, processingAt }: Payment): boolean {
  return !isSettled(state) && chargeRef === undefined && processingAt === undefined;
}

/** Without a key there is no second call: who is owed the money may charge anew, as another payment. */
function planAgain({ calledAt, createdAt, lookUps }: Payment, { repeatable }: PaymentProvider, now: Date) {
  if (!repeatable.has('charge')) return 'fail';
  const since = instantOf(calledAt ?? createdAt);
  return planAfterNothing({ found: 'absent', calls: lookUps + 1, isKeyed: true, since }, instantOf(now));
}

function instantOf(at: Date): Temporal.Instant {
  return Temporal.Instant.fromEpochMilliseconds(at.getTime());
}

async function lookUp(deps: PaymentWorkDeps, payment: Payment): Promise<void> {
  const { payments, taking, providers, settle, clock, log } = deps;
  const { id, purpose, provider: name, expiresAt } = payment;
  const provider = providers.find(name);
  if (provider === undefined) {
    log.warn({ paymentId: id, provider: name }, 'a provider that is to be asked has no settings any more');
    return payments.lookedUp(id);
  }
  const lookup = await provider.lookUp(questionOf(payment));
  if (lookup.found === 'facts') {
    for (const fact of lookup.facts) await settle({ provider: name, fact, source: 'lookup' });
  } else if (lookup.found === 'absent' && purpose === 'charge') {
    if (planAgain(payment, provider, clock.now()) === 'call') await taking.chargeAgain(payment);
    else
      await payments.change(id, (known) =>
        isUntold(known.payment) ? { event: 'declined', source: 'lookup', reason: 'not_made' } : undefined,
      );
  } else if (lookup.found !== 'unknown' && purpose !== 'charge' && clock.now() >= expiresAt) {
    await payments.change(id, (known) =>
      isUntold(known.payment) ? { event: 'expired', source: 'lookup' } : undefined,
    );
  }
  await payments.lookedUp(id, lookup.found === 'unknown' ? lookup.retryAfterMs : undefined);
}

function questionOf({ id, money, createdAt, checkoutRef, chargeRef, method, purpose }: Payment): PaymentQuestion {
  return {
    paymentId: id,
    money,
    createdAt,
    ...(checkoutRef === undefined ? {} : { checkoutRef }),
    ...(chargeRef === undefined ? {} : { chargeRef }),
    ...(method === undefined || purpose !== 'charge' ? {} : { method }),
  };
}
