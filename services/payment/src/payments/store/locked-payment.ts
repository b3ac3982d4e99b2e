import type { PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { Vault } from '@rollcall/platform/vault.ts';
import type { KnownCharge, KnownDispute, KnownReturn, Snapshot } from '../domain/payments.ts';
import { PAYMENT_COLUMNS, type PaymentRow, paymentOf } from './payment-rows.ts';

interface MoneyRow {
  readonly amount: string;
  readonly currency: string;
}

interface ChargeRow extends MoneyRow {
  readonly charge_ref: string;
  readonly fee: string | null;
  readonly is_booked: boolean;
}

interface ReturnRow extends MoneyRow {
  readonly refund_ref: string;
  readonly is_booked: boolean;
}

interface DisputeRow extends MoneyRow {
  readonly dispute_ref: string;
  readonly state: KnownDispute['state'];
}

/** Locks a payment until the transaction ends, and reads what is known of it. No provider is called meanwhile. */
export async function lockPayment(client: PoolClient, vault: Vault, id: string): Promise<Snapshot | undefined> {
  const { rows } = await client.query<PaymentRow>(`SELECT ${PAYMENT_COLUMNS} FROM payments WHERE id = $1 FOR UPDATE`, [
    id,
  ]);
  const [row] = rows;
  if (row === undefined) return undefined;
  const { rows: charges } = await client.query<ChargeRow>(
    'SELECT charge_ref, amount, currency, fee, is_booked FROM charges WHERE payment_id = $1 ORDER BY created_at, charge_ref',
    [id],
  );
  const { rows: returns } = await client.query<ReturnRow>(
    'SELECT refund_ref, amount, currency, is_booked FROM returns WHERE payment_id = $1 ORDER BY created_at, refund_ref',
    [id],
  );
  const { rows: disputes } = await client.query<DisputeRow>(
    'SELECT dispute_ref, amount, currency, state FROM disputes WHERE payment_id = $1 ORDER BY created_at, dispute_ref',
    [id],
  );
  return {
    payment: paymentOf(vault, row),
    charges: charges.map(chargeOf),
    returns: returns.map(returnOf),
    disputes: disputes.map(disputeOf),
  };
}

function returnOf({ refund_ref, is_booked, ...money }: ReturnRow): KnownReturn {
  return { refundRef: refund_ref, money: moneyOf(money), isBooked: is_booked };
}

function disputeOf({ dispute_ref, state, ...money }: DisputeRow): KnownDispute {
  return { disputeRef: dispute_ref, money: moneyOf(money), state };
}

function moneyOf({ amount, currency }: MoneyRow): KnownCharge['money'] {
  return { amount: BigInt(amount), currency };
}

function chargeOf({ charge_ref, fee, is_booked, ...money }: ChargeRow): KnownCharge {
  return {
    chargeRef: charge_ref,
    money: moneyOf(money),
    fee: fee === null ? undefined : BigInt(fee),
    isBooked: is_booked,
  };
}
