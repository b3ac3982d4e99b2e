import type { PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { Vault } from '@rollcall/platform/vault.ts';
import type { KnownCharge, KnownDispute, KnownReturn, Payment, Snapshot } from '../domain/payments.ts';
import { PAYMENT_COLUMNS, type PaymentRow, paymentOf } from './payment-rows.ts';

interface MoneyRow {
  readonly ref: string;
  readonly amount: string;
  readonly currency: string;
}

type KnownRow = MoneyRow &
  (
    | {
        readonly kind: 'charge';
        readonly fee: string | null;
        readonly is_booked: boolean;
        readonly is_dismissed: boolean;
      }
    | { readonly kind: 'return'; readonly is_booked: boolean; readonly is_dismissed: boolean }
    | { readonly kind: 'dispute'; readonly state: KnownDispute['state']; readonly counted: string | null }
  );

const LOCK = { name: 'lock payment', text: `SELECT ${PAYMENT_COLUMNS} FROM payments WHERE id = $1 FOR UPDATE` };

/** All that providers say of the money of a payment. */
const MONEY = {
  name: 'money of payment',
  text: `SELECT 'charge' AS kind, charge_ref AS ref, amount, currency, fee, is_booked, is_dismissed, NULL AS state,
      NULL::bigint AS counted, created_at
    FROM charges WHERE payment_id = $1
    UNION ALL SELECT 'return', refund_ref, amount, currency, NULL, is_booked, is_dismissed, NULL, NULL, created_at
    FROM returns WHERE payment_id = $1
    UNION ALL SELECT 'dispute', dispute_ref, amount, currency, NULL, NULL, NULL, state, counted, created_at
    FROM disputes WHERE payment_id = $1
    ORDER BY created_at, ref`,
};

/** Locks a payment until the transaction ends, and reads what is known of it. No provider is called meanwhile. */
export async function lockPayment(client: PoolClient, vault: Vault, id: string): Promise<Snapshot | undefined> {
  const { rows } = await client.query<PaymentRow>({ ...LOCK, values: [id] });
  const [row] = rows;
  if (row === undefined) return undefined;
  // A statement of its own: it sees what the one who had the lock before has written.
  const { rows: known } = await client.query<KnownRow>({ ...MONEY, values: [id] });
  const payment = paymentOf(vault, row);
  return { payment, ...knownOf(known, payment) };
}

function knownOf(rows: readonly KnownRow[], payment: Payment): Omit<Snapshot, 'payment'> {
  const charges: KnownCharge[] = [];
  const returns: KnownReturn[] = [];
  const disputes: KnownDispute[] = [];
  for (const row of rows) {
    const money = { amount: BigInt(row.amount), currency: row.currency };
    if (row.kind === 'dispute')
      disputes.push({ disputeRef: row.ref, money, state: row.state, counted: countedOf(row, payment) });
    else if (row.kind === 'return')
      returns.push({ refundRef: row.ref, money, isBooked: row.is_booked, isDismissed: row.is_dismissed });
    else {
      const fee = row.fee === null ? undefined : BigInt(row.fee);
      charges.push({ chargeRef: row.ref, money, fee, isBooked: row.is_booked, isDismissed: row.is_dismissed });
    }
  }
  return { charges, returns, disputes };
}

/** An older version took at once what was there to take, and did not write down how much (migration 0053). */
function countedOf(
  { state, amount, counted }: Extract<KnownRow, { readonly kind: 'dispute' }>,
  { balance }: Payment,
): bigint {
  if (counted !== null) return BigInt(counted);
  if (state !== 'lost') return 0n;
  const lost = BigInt(amount);
  return lost < balance.refunded ? lost : balance.refunded;
}
