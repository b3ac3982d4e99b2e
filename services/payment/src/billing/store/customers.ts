import { type NewestQuery, readNewest } from '@rollcall/platform/postgres/page.ts';
import { inTransaction, type Pool } from '@rollcall/platform/postgres/pool.ts';
import type { BlindIndex, Vault } from '@rollcall/platform/vault.ts';
import { paymentError } from '../../domain/errors.ts';
import { foldedEmail } from '../../payments/store/payment-rows.ts';
import type { Customer, CustomerStore } from '../domain/customers.ts';
import {
  CUSTOMER_COLUMNS,
  type CustomerRow,
  findCustomer,
  openedCustomer,
  type PersonalFields,
  sealedCustomer,
} from './customer-rows.ts';
import { dropRemains, eraseCustomer } from './erasure.ts';
import type { MethodRows } from './methods.ts';
import type { InvoiceSealer } from './sealed-invoices.ts';

export interface CustomerTableDeps {
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
  readonly vault: Vault;
  /** Of addresses. */
  readonly emails: BlindIndex;
  readonly methods: MethodRows;
  readonly sealer: InvoiceSealer;
}

export function createCustomerTable(deps: CustomerTableDeps): CustomerStore {
  const { pool, vault, emails } = deps;
  const seal = (id: string, personal: PersonalFields): Buffer => sealedCustomer(vault, id, personal);
  const indexOf = (email: string): Buffer => emails.of(foldedEmail(email));

  const customerOf = (row: CustomerRow): Customer => openedCustomer(vault, row);

  return {
    async create({ id, subject, timeZone, locale, ...personal }) {
      await pool().query(
        `INSERT INTO customers (id, subject, sealed, email_index, time_zone, locale)
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING`,
        [id, subject, seal(id, personal), indexOf(personal.email), timeZone, locale],
      );
      const { rows } = await pool().query<CustomerRow>(`SELECT ${CUSTOMER_COLUMNS} FROM customers WHERE id = $1`, [id]);
      const [row] = rows;
      if (row === undefined) throw new Error('The customer that was made is gone');
      return customerOf(row);
    },
    find: (id, owner) => findCustomer(pool(), vault, { id, owner }),
    async list({ owner, email, page }) {
      const query: NewestQuery = {
        table: 'customers',
        columns: CUSTOMER_COLUMNS,
        where: `($1::text IS NULL OR subject = $1) AND ($2::bytea[] IS NULL OR email_index = ANY($2))
          AND erased_at IS NULL`,
        parameters: [owner, email === undefined ? undefined : emails.candidates(foldedEmail(email))],
        page,
      };
      const { rows, ...rest } = await readNewest<CustomerRow>(pool(), query);
      return { rows: rows.map(customerOf), ...rest };
    },
    update: (id, owner, change) =>
      inTransaction(pool(), async (client) => {
        const { rows } = await client.query<CustomerRow>(
          `SELECT ${CUSTOMER_COLUMNS} FROM customers WHERE id = $1 AND ($2::text IS NULL OR subject = $2) FOR UPDATE`,
          [id, owner],
        );
        const [row] = rows;
        if (row === undefined) return undefined;
        if (row.erased_at !== null) throw paymentError('CUSTOMER_ERASED');
        const changed = { ...customerOf(row), ...change };
        const { rows: updated } = await client.query<CustomerRow>(
          `UPDATE customers SET sealed = $2, email_index = $3, time_zone = $4, locale = $5, updated_at = now()
           WHERE id = $1 RETURNING ${CUSTOMER_COLUMNS}`,
          [id, seal(id, changed), indexOf(changed.email), changed.timeZone, changed.locale],
        );
        return updated.map(customerOf)[0];
      }),
    async erase(id, owner) {
      if ((await findCustomer(pool(), vault, { id, owner })) === undefined) return undefined;
      const erased = await inTransaction(pool(), (client) => eraseCustomer(client, deps, id));
      await dropRemains(pool(), id);
      return erased;
    },
  };
}
