import type { PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { Vault } from '@rollcall/platform/vault.ts';
import type { KnownCharge, Snapshot } from '../domain/payments.ts';
import { PAYMENT_COLUMNS, type PaymentRow, paymentOf } from './payment-rows.ts';

interface ChargeRow {
  readonly charge_ref: string;
  readonly amount: string;
  readonly currency: string;
  readonly fee: string | null;
  readonly is_booked: boolean;
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
  return { payment: paymentOf(vault, row), charges: charges.map(chargeOf) };
}

function chargeOf({ charge_ref, amount, currency, fee, is_booked }: ChargeRow): KnownCharge {
  return {
    chargeRef: charge_ref,
    money: { amount: BigInt(amount), currency },
    fee: fee === null ? undefined : BigInt(fee),
    isBooked: is_booked,
  };
}
