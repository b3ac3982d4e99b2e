import { randomBytes, randomUUID } from 'node:crypto';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { RecordEvents } from '@rollcall/platform/events/events.ts';
import type { Pool, PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { LateCapture } from '../../domain/payment-states.ts';
import type { StoredMethod } from '../../domain/ports.ts';
import { postEntries } from '../../ledger/store.ts';
import type { ChangeSource, PlannedChange } from '../domain/changes.ts';
import { dueAt } from '../domain/due.ts';
import { paymentEventData } from '../domain/events.ts';
import type { KnownCharge, Payment, PaymentStore } from '../domain/payments.ts';
import { lockPayment } from './locked-payment.ts';
import { type PaymentSealing, pageTokenHash, refundContext, sealedColumns } from './payment-rows.ts';

const PAGE_TOKEN_BYTES = 32;

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

export interface PaymentTableDeps extends PaymentSealing {
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
  readonly recordEvents: RecordEvents;
  readonly clock: Clock;
  readonly lateCapture: LateCapture;
  readonly onMoved: OnPaymentMoved;
}

type NewPayment = Parameters<PaymentStore['create']>[0];

export async function insertPayment(
  deps: PaymentTableDeps,
  client: PoolClient,
  { terms, expiresAt }: { readonly terms: NewPayment; readonly expiresAt: Date },
): Promise<Payment> {
  const { id, subject, provider, purpose, money, customerId, invoiceId } = terms;
  const pageToken = randomBytes(PAGE_TOKEN_BYTES).toString('base64url');
  const { sealed, emailIndex, methodIndex } = sealedColumns(deps, id, { ...terms, pageToken, redirect: undefined });
  const { rowCount } = await client.query(
    `INSERT INTO payments (id, subject, provider, purpose, amount, currency, state, sealed, email_index, method_index,
       page_token_hash, customer_id, invoice_id, expires_at, due_at)
     VALUES ($1, $2, $3, $4, $5, $6, 'pending', $7, $8, $9, $10, $11, $12, $13, $13) ON CONFLICT (id) DO NOTHING`,
    [
      id,
      subject,
      provider,
      purpose,
      money.amount.toString(),
      money.currency,
      sealed,
      emailIndex,
      methodIndex,
      pageTokenHash(pageToken),
      customerId,
      invoiceId,
      expiresAt,
    ],
  );
  const snapshot = await lockPayment(client, deps.vault, id);
  if (snapshot === undefined) throw new Error('The payment that was made is gone');
  const { payment } = snapshot;
  if (rowCount === 1) {
    await client.query(
      `INSERT INTO payment_events (payment_id, event, source, to_state) VALUES ($1, 'created', 'caller', 'pending')`,
      [id],
    );
    await deps.recordEvents(client, [
      { subject, type: 'payment.created', resourceId: id, data: paymentEventData(payment) },
    ]);
  }
  return payment;
}

interface Written {
  readonly told: {
    readonly event: string;
    readonly source: ChangeSource;
    readonly reason?: string | undefined;
    readonly actor?: string | undefined;
  };
  readonly planned: PlannedChange;
}

/** Writes a planned change of a payment whose row is locked. @returns it as it is then. */
export async function writeChange(
  deps: PaymentTableDeps,
  client: PoolClient,
  { told, planned }: Written,
): Promise<Payment> {
  const { movedFrom, entries, method, refund } = planned;
  const payment = await updatePayment(deps, client, planned.payment);
  const { id, subject, state } = payment;
  await writeMoney(client, planned);
  await client.query(
    `INSERT INTO payment_events (payment_id, event, source, from_state, to_state, reason, actor)
     VALUES ($1, $2, $3, $4, $5, $6, $7)`,
    [id, told.event, told.source, movedFrom ?? state, state, told.reason, told.actor],
  );
  await postEntries(client, { subject, paymentId: id }, entries);
  if (movedFrom !== undefined) {
    const data = paymentEventData(payment);
    await deps.recordEvents(client, [{ subject, type: `payment.${state}`, resourceId: id, data }]);
  }
  if (movedFrom !== undefined || method !== undefined)
    await deps.onMoved(client, { payment, method, isReturned: refund > 0n });
  if (refund > 0n) await insertLateRefund(deps, client, { payment, amount: refund });
  return payment;
}

/** What the provider says of the payment's money. @throws Error where another payment has it. */
async function writeMoney(client: PoolClient, planned: PlannedChange): Promise<void> {
  const { payment, replaced, charges, returns, dispute } = planned;
  const { id, provider } = payment;
  if (replaced !== undefined) {
    const where = 'provider = $1 AND charge_ref = $2 AND payment_id = $3';
    await client.query(`DELETE FROM charges WHERE ${where}`, [provider, replaced, id]);
  }
  for (const charge of charges) await writeCharge(client, payment, charge);
  for (const { refundRef, money, isBooked } of returns) {
    const { rowCount } = await client.query(
      `INSERT INTO returns (provider, refund_ref, payment_id, amount, currency, is_booked) VALUES ($1, $2, $3, $4, $5, $6)
       ON CONFLICT (provider, refund_ref) DO UPDATE SET is_booked = excluded.is_booked
       WHERE returns.payment_id = excluded.payment_id`,
      [provider, refundRef, id, money.amount.toString(), money.currency, isBooked],
    );
    if (rowCount !== 1) throw new Error('What went back is of another payment');
  }
  if (dispute === undefined) return;
  const { disputeRef, money, state } = dispute;
  const { rowCount } = await client.query(
    `INSERT INTO disputes (provider, dispute_ref, payment_id, amount, currency, state) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (provider, dispute_ref) DO UPDATE SET state = excluded.state, updated_at = now()
     WHERE disputes.payment_id = excluded.payment_id`,
    [provider, disputeRef, id, money.amount.toString(), money.currency, state],
  );
  if (rowCount !== 1) throw new Error('The dispute is of another payment');
}

/** @throws Error where another payment has the charge: who tried then finds that payment by it. */
async function writeCharge(client: PoolClient, payment: Payment, charge: KnownCharge): Promise<void> {
  const { chargeRef, money, fee, isBooked } = charge;
  const { rowCount } = await client.query(
    `INSERT INTO charges (provider, charge_ref, payment_id, amount, currency, fee, is_booked)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (provider, charge_ref) DO UPDATE SET fee = excluded.fee, is_booked = excluded.is_booked
     WHERE charges.payment_id = excluded.payment_id`,
    [payment.provider, chargeRef, payment.id, money.amount.toString(), money.currency, fee?.toString(), isBooked],
  );
  if (rowCount !== 1) throw new Error('The charge is of another payment');
}

async function updatePayment(deps: PaymentTableDeps, client: PoolClient, payment: Payment): Promise<Payment> {
  const { id, state, reason, balance, checkoutRef, chargeRef } = payment;
  const { sealed, methodIndex } = sealedColumns(deps, id, payment);
  const { rows } = await client.query<{ updated_at: Date }>(
    `UPDATE payments SET state = $2, reason = $3, captured = $4, refunded = $5, reserved = $6, sealed = $7,
       method_index = $8, checkout_ref = $9, charge_ref = $10, due_at = $11, processing_at = $12,
       decision = $13, updated_at = now() WHERE id = $1 RETURNING updated_at`,
    [
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
  );
  return { ...payment, updatedAt: rows[0]?.updated_at ?? payment.updatedAt };
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
