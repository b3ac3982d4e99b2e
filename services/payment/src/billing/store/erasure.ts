import { forgetOutcomes } from '@rollcall/platform/postgres/idempotency.ts';
import type { Pool, PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { Vault } from '@rollcall/platform/vault.ts';
import { dropUnnamedNotifications, erasePayers, lockPaymentsOf } from '../../payments/store/erasure.ts';
import { blankCustomer, type Customer, type OpenThings, refuseWhileOpen } from '../domain/customers.ts';
import { findCustomer, sealedCustomer } from './customer-rows.ts';
import type { MethodRows } from './methods.ts';
import type { InvoiceSealer } from './sealed-invoices.ts';
import { forgetMetadata, lockSubscriptionsOf } from './subscription-metadata.ts';

export interface ErasureDeps {
  readonly vault: Vault;
  readonly methods: MethodRows;
  readonly sealer: InvoiceSealer;
}

/** So many of a kind are named. */
const NAMED = 10;

/**
 * Erases a customer whom nothing binds any more. Payments are locked first, then
 * subscriptions, the customer last: who makes something for the customer holds that row meanwhile.
 *
 * @returns undefined where there is none. One that is erased stays so.
 * @throws ServiceError CUSTOMER_IN_USE.
 */
export async function eraseCustomer(
  client: PoolClient,
  { vault, methods, sealer }: ErasureDeps,
  id: string,
): Promise<Customer | undefined> {
  await lockPaymentsOf(client, id);
  await lockSubscriptionsOf(client, id);
  await client.query('SELECT FROM customers WHERE id = $1 FOR UPDATE', [id]);
  const customer = await findCustomer(client, vault, { id, owner: undefined });
  if (customer === undefined) return undefined;
  // An older version that runs beside this one, or after it, fills an erased one again, or leaves metadata.
  if (customer.erasedAt !== undefined && customer.email === '') {
    await forgetMetadata(client, id);
    await blankDrafts(client, sealer, id);
    return customer;
  }
  // Those that were made since the first look are open.
  const payments = await lockPaymentsOf(client, id);
  refuseWhileOpen({
    ...(await openOf(client, id)),
    payments: payments.flatMap(({ id: paymentId, isOpen }) => (isOpen ? [paymentId] : [])).slice(0, NAMED),
  });
  for (const { id: methodId } of await methods.listOf(client, [id])) {
    await methods.remove(client, { customerId: id, methodId });
  }
  await client.query(
    `DELETE FROM billing_mails WHERE due_at IS NOT NULL
       AND invoice_id IN (SELECT id FROM invoices WHERE customer_id = $1)`,
    [id],
  );
  const ids = payments.map((payment) => payment.id);
  await erasePayers(client, vault, ids);
  await forgetMetadata(client, id);
  await blankDrafts(client, sealer, id);
  await client.query(
    `UPDATE customers SET sealed = $2, email_index = NULL, erased_at = COALESCE(erased_at, now()), updated_at = now()
     WHERE id = $1`,
    [id, sealedCustomer(vault, id, blankCustomer)],
  );
  return findCustomer(client, vault, { id, owner: undefined });
}

/** Drafts that were taken back keep what they billed, as payments keep what was paid for, and no metadata. */
async function blankDrafts(client: PoolClient, sealer: InvoiceSealer, customerId: string): Promise<void> {
  const { rows } = await client.query<{ id: string; sealed: Buffer }>(
    'SELECT id, sealed FROM invoices WHERE customer_id = $1 AND finalized_at IS NULL',
    [customerId],
  );
  const blank = rows.map(({ id, sealed }) => sealer.seal(id, { lines: sealer.openInvoice(id, sealed).lines }));
  await client.query(
    `UPDATE invoices SET sealed = blank.sealed FROM unnest($1::uuid[], $2::bytea[]) AS blank (id, sealed)
     WHERE invoices.id = blank.id`,
    [rows.map(({ id }) => id), blank],
  );
}

/** Drops what is nowhere by the customer's name. Once the erasure is kept; done again where it ended half way. */
export async function dropRemains(pool: Pool, customerId: string): Promise<void> {
  const tables = ['payments', 'invoices', 'subscriptions'];
  const idsIn = tables.map((table) => `SELECT id FROM ${table} WHERE customer_id = $1`).join(' UNION ALL ');
  const { rows } = await pool.query<{ id: string }>(idsIn, [customerId]);
  await forgetOutcomes(pool, [customerId, ...rows.map(({ id }) => id)]);
  await dropUnnamedNotifications(pool);
}

async function openOf(client: PoolClient, customerId: string): Promise<Omit<OpenThings, 'payments'>> {
  const idsOf = async (table: 'subscriptions' | 'invoices', isOpen: string): Promise<readonly string[]> => {
    const { rows } = await client.query<{ id: string }>(
      `SELECT id FROM ${table} WHERE customer_id = $1 AND ${isOpen} ORDER BY created_at, id LIMIT ${NAMED}`,
      [customerId],
    );
    return rows.map(({ id }) => id);
  };
  return {
    subscriptions: await idsOf('subscriptions', "state <> 'cancelled'"),
    invoices: await idsOf('invoices', "state IN ('draft', 'open')"),
  };
}
