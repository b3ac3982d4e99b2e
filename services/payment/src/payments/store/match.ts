import type { Pool } from '@rollcall/platform/postgres/pool.ts';
import type { BlindIndex } from '@rollcall/platform/vault.ts';
import type { PaymentReference, ProviderName } from '../../domain/ports.ts';

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

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
  if (chargeRef !== undefined) {
    const [id] = await ids(
      `SELECT payment_id AS id FROM charges WHERE provider = $1 AND charge_ref = $2
       UNION ALL SELECT id FROM payments WHERE provider = $1 AND charge_ref = $2 LIMIT 1`,
      [chargeRef],
    );
    if (id !== undefined) return id;
  }
  const tokens = token === undefined ? [] : methods.candidates(token);
  if (paymentId !== undefined && UUID.test(paymentId)) {
    // Where it has been charged already, the same method is charged for something else; and another checkout is
    // another program's.
    const [id] = await ids(
      `SELECT id FROM payments WHERE provider = $1 AND id = $2
         AND (charge_ref IS NULL OR method_index IS NULL OR NOT method_index = ANY($3))
         AND ($4::text IS NULL OR checkout_ref IS NULL OR checkout_ref = $4)`,
      [paymentId, tokens, checkoutRef],
    );
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
