import { randomUUID } from 'node:crypto';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { RecordEvents } from '@rollcall/platform/events/events.ts';
import { joined, type Statement } from '@rollcall/platform/postgres/joined.ts';
import type { Pool, PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { Vault } from '@rollcall/platform/vault.ts';
import type { LateCapture } from '../../domain/payment-states.ts';
import type { StoredMethod } from '../../domain/ports.ts';
import type { QueueErrand } from '../../errands/queue.ts';
import { entryStatements } from '../../ledger/store.ts';
import { type ChangeSource, leavesCheckoutOpen, type PlannedChange } from '../domain/changes.ts';
import { dueAt } from '../domain/due.ts';
import { paymentEventData } from '../domain/events.ts';
import type { KnownDispute, Payment, PaymentTerms } from '../domain/payments.ts';
import { noteContext, type PaymentSealing, refundContext, sealedColumns } from './payment-rows.ts';

/** A payment that has moved, or whose method the provider keeps now. */
interface PaymentMove {
  readonly payment: Payment;
  /** Kept by the provider with this change, for charges without the payer. */
  readonly method: StoredMethod | undefined;
  /** The money came too late, and goes back. */
  readonly isReturned: boolean;
}

/** Told in the transaction of the change: what it writes is kept with it, and what it throws undoes it. */
export type OnPaymentMoved = (client: PoolClient, move: PaymentMove) => Promise<void>;

/** Told in the transaction in which a payment of a customer is made: what it throws undoes that. */
export type OnPaymentMade = (client: PoolClient, terms: PaymentTerms) => Promise<void>;

export interface PaymentTableDeps extends PaymentSealing {
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
  readonly recordEvents: RecordEvents;
  readonly clock: Clock;
  readonly lateCapture: LateCapture;
  readonly onMade: OnPaymentMade;
  readonly onMoved: OnPaymentMoved;
  readonly queueErrand: QueueErrand;
}

interface Written {
  readonly told: {
    readonly event: string;
    readonly source: ChangeSource;
    readonly reason?: string | undefined;
    readonly actor?: string | undefined;
    readonly note?: string | undefined;
  };
  readonly planned: PlannedChange;
}

/** Writes a planned change of a payment whose row is locked. @returns it as it is then. */
export async function writeChange(
  deps: PaymentTableDeps,
  client: PoolClient,
  { told, planned }: Written,
): Promise<Payment> {
  const { movedFrom, entries, charges, method, refund } = planned;
  const { id, subject, state } = planned.payment;
  await writeSeldomMoney(client, planned);
  const statements = [
    paymentStatement(deps, planned.payment),
    {
      name: 'history',
      text: `INSERT INTO payment_events (payment_id, event, source, from_state, to_state, reason, actor)
        VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id`,
      values: [id, told.event, told.source, movedFrom ?? state, state, told.reason, told.actor],
    },
    ...(told.note === undefined ? [] : [noteStatement(deps.vault, id, told.note)]),
    ...(charges.length === 0 ? [] : [chargesStatement(planned)]),
    ...entryStatements({ subject, paymentId: id }, entries),
    ...(movedFrom === undefined ? [] : [eventStatement(deps.recordEvents, planned.payment, state)]),
  ];
  const written = charges.length === 0 ? '0' : '(SELECT count(*)::int FROM charge)';
  const { rows } = await client.query<{ updated_at: Date; charges: number }>(
    joined('change', statements, `SELECT updated_at, ${written} AS charges FROM payment`),
  );
  const [row] = rows;
  // Who tried then finds that payment by it.
  if (row?.charges !== charges.length) throw new Error('The charge is of another payment');
  const payment = { ...planned.payment, updatedAt: row.updated_at };
  if (movedFrom !== undefined || method !== undefined)
    await deps.onMoved(client, { payment, method, isReturned: refund > 0n });
  if (leavesCheckoutOpen(told, planned) && payment.checkoutRef !== undefined) {
    const { provider, checkoutRef: reference } = payment;
    await deps.queueErrand(client, { provider, kind: 'close_checkout', reference });
  }
  if (refund > 0n) await insertLateRefund(deps, client, { payment, amount: refund });
  return payment;
}

/** What providers seldom say of money. @throws Error where another payment has it. */
async function writeSeldomMoney(client: PoolClient, planned: PlannedChange): Promise<void> {
  const { payment, replaced, returns, disputes } = planned;
  const { id, provider } = payment;
  if (replaced !== undefined) {
    const where = 'provider = $1 AND charge_ref = $2 AND payment_id = $3';
    await client.query(`DELETE FROM charges WHERE ${where}`, [provider, replaced, id]);
  }
  for (const { refundRef, money, isBooked, isDismissed } of returns) {
    const { rowCount } = await client.query(
      `INSERT INTO returns (provider, refund_ref, payment_id, amount, currency, is_booked, is_dismissed)
       VALUES ($1, $2, $3, $4, $5, $6, $7)
       ON CONFLICT (provider, refund_ref) DO UPDATE
         SET is_booked = excluded.is_booked, is_dismissed = excluded.is_dismissed
       WHERE returns.payment_id = excluded.payment_id`,
      [provider, refundRef, id, money.amount.toString(), money.currency, isBooked, isDismissed],
    );
    if (rowCount !== 1) throw new Error('What went back is of another payment');
  }
  for (const dispute of disputes) await writeDispute(client, payment, dispute);
}

/** @throws Error where another payment has the dispute. */
async function writeDispute(client: PoolClient, { id, provider }: Payment, dispute: KnownDispute): Promise<void> {
  const { disputeRef, money, state } = dispute;
  // An older version that runs beside this one, or after it, ends a dispute without counting.
  const counted = state === 'lost' ? dispute.counted.toString() : undefined;
  const { rowCount } = await client.query(
    `INSERT INTO disputes (provider, dispute_ref, payment_id, amount, currency, state, counted)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (provider, dispute_ref) DO UPDATE SET state = excluded.state, counted = excluded.counted,
       updated_at = now()
     WHERE disputes.payment_id = excluded.payment_id`,
    [provider, disputeRef, id, money.amount.toString(), money.currency, state, counted],
  );
  if (rowCount !== 1) throw new Error('The dispute is of another payment');
}

/** It RETURNs nothing of a charge that another payment has. What is booked keeps the amount that was entered. */
function chargesStatement({ payment, charges }: PlannedChange): Statement {
  return {
    name: 'charge',
    text: `INSERT INTO charges (provider, charge_ref, payment_id, amount, currency, fee, is_booked, is_dismissed)
      SELECT $1, charge_ref, $2, amount, currency, fee, is_booked, is_dismissed
      FROM unnest($3::text[], $4::bigint[], $5::text[], $6::bigint[], $7::boolean[], $8::boolean[])
        AS told (charge_ref, amount, currency, fee, is_booked, is_dismissed)
      ON CONFLICT (provider, charge_ref) DO UPDATE
        SET fee = excluded.fee, is_booked = excluded.is_booked, is_dismissed = excluded.is_dismissed,
          amount = CASE WHEN charges.is_booked THEN charges.amount ELSE excluded.amount END,
          currency = CASE WHEN charges.is_booked THEN charges.currency ELSE excluded.currency END
      WHERE charges.payment_id = excluded.payment_id RETURNING charge_ref`,
    values: [
      payment.provider,
      payment.id,
      charges.map(({ chargeRef }) => chargeRef),
      charges.map(({ money }) => money.amount.toString()),
      charges.map(({ money }) => money.currency),
      charges.map(({ fee }) => fee?.toString()),
      charges.map(({ isBooked }) => isBooked),
      charges.map(({ isDismissed }) => isDismissed),
    ],
  };
}

function paymentStatement(deps: PaymentTableDeps, payment: Payment): Statement {
  const { id, state, reason, balance, checkoutRef, chargeRef } = payment;
  const { sealed, methodIndex } = sealedColumns(deps, id, payment);
  return {
    name: 'payment',
    text: `UPDATE payments SET state = $2, reason = $3, captured = $4, refunded = $5, reserved = $6, sealed = $7,
       method_index = $8, checkout_ref = $9, charge_ref = $10, due_at = $11, processing_at = $12,
       decision = $13, updated_at = now() WHERE id = $1 RETURNING updated_at`,
    values: [
      id,
      state,
      reason,
      balance.captured.toString(),
      balance.refunded.toString(),
      balance.reserved.toString(),
      sealed,
      methodIndex,
      checkoutRef,
      chargeRef,
      dueAt(payment, deps.clock.now()),
      payment.processingAt,
      payment.decision,
    ],
  };
}

/** Where the statement named `payment` RETURNs its row. @param what happened, as in the type of the event. */
export function eventStatement(
  recordEvents: RecordEvents,
  payment: Payment,
  what: Payment['state'] | 'created',
): Statement {
  const { id, subject } = payment;
  return {
    name: 'event',
    text: `INSERT INTO events (id, subject, type, resource_id, data)
      SELECT $1::uuid, $2::text, $3::text, $4::uuid, $5::bytea FROM payment`,
    values: recordEvents.valuesOf({
      subject,
      type: `payment.${what}`,
      resourceId: id,
      data: paymentEventData(payment),
    }),
  };
}

/** Where the statement named `history` RETURNs its row. */
function noteStatement(vault: Vault, paymentId: string, note: string): Statement {
  const id = randomUUID();
  return {
    name: 'note',
    text: `INSERT INTO payment_notes (id, payment_id, event_id, sealed)
      SELECT $1::uuid, $2::uuid, id, $3::bytea FROM history`,
    values: [id, paymentId, vault.seal(note, noteContext(id))],
  };
}

interface LateRefund {
  readonly payment: Payment;
  readonly amount: bigint;
}

/** Money that came too late goes back: the worker of refunds finds it. */
async function insertLateRefund({ vault }: PaymentTableDeps, client: PoolClient, late: LateRefund): Promise<void> {
  const { payment, amount } = late;
  const id = randomUUID();
  await client.query('UPDATE payments SET reserved = reserved + $2 WHERE id = $1', [payment.id, amount.toString()]);
  await client.query(
    `INSERT INTO refunds (id, payment_id, subject, amount, currency, state, sealed, due_at)
     VALUES ($1, $2, $3, $4, $5, 'pending', $6, now())`,
    [
      id,
      payment.id,
      payment.subject,
      amount.toString(),
      payment.money.currency,
      vault.seal(JSON.stringify({ reason: 'Paid after it was no longer wanted' }), refundContext(id)),
    ],
  );
}
