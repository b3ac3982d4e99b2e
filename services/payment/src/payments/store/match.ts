import type { Pool } from '@rollcall/platform/postgres/pool.ts';
import type { BlindIndex } from '@rollcall/platform/vault.ts';
import type { PaymentReference, ProviderName } from '../../domain/ports.ts';

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * By our id: where it has been charged already, the same method is charged for something else; and another
 * checkout is another program's.
 */
const MATCH = {
  name: 'match payment',
  text: `SELECT payment_id AS id, 1 AS place FROM charges WHERE provider = $1 AND charge_ref = $2
    UNION ALL SELECT id, 2 FROM payments WHERE provider = $1 AND charge_ref = $2
    UNION ALL SELECT id, 3 FROM payments WHERE provider = $1 AND id = $3
      AND (charge_ref IS NULL OR method_index IS NULL OR NOT method_index = ANY($4))
      AND ($5::text IS NULL OR checkout_ref IS NULL OR checkout_ref = $5)
    ORDER BY place LIMIT 1`,
};

/** See `PaymentStore.match`. The more exact references come first. */
export async function matchPayment(
  pool: Pool,
  methods: BlindIndex,
  { provider, reference }: { readonly provider: ProviderName; readonly reference: PaymentReference },
): Promise<string | undefined> {
  const { paymentId, checkoutRef, chargeRef, token } = reference;
  const ids = async (query: string, parameters: readonly unknown[]): Promise<readonly string[]> => {
    const { rows } = await pool.query<{ id: string }>(query, [provider, ...parameters]);
    return rows.map(({ id }) => id);
  };
  const tokens = token === undefined ? [] : methods.candidates(token);
  const ownId = paymentId !== undefined && UUID.test(paymentId) ? paymentId : undefined;
  if (chargeRef !== undefined || ownId !== undefined) {
    const values = [provider, chargeRef, ownId, tokens, checkoutRef];
    const { rows } = await pool.query<{ id: string }>({ ...MATCH, values });
    const [id] = rows.map((row) => row.id);
    if (id !== undefined) return id;
  }
  if (tokens.length > 0) {
    const open = await ids(
      `SELECT id FROM payments WHERE provider = $1 AND method_index = ANY($2) AND purpose = 'charge'
         AND state IN ('pending', 'processing') AND called_at IS NOT NULL AND charge_ref IS NULL LIMIT 2`,
      [tokens],
    );
    if (open.length === 1) return open[0];
  }
  if (checkoutRef === undefined) return undefined;
  const [id] = await ids('SELECT id FROM payments WHERE provider = $1 AND checkout_ref = $2 LIMIT 1', [checkoutRef]);
  return id;
}
