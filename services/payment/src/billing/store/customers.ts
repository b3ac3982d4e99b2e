import { type NewestQuery, readNewest } from '@rollcall/platform/postgres/page.ts';
import { inTransaction, type Pool, type PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { BlindIndex, Vault } from '@rollcall/platform/vault.ts';
import { foldedEmail } from '../../payments/store/payment-rows.ts';
import type { Customer, CustomerFields, CustomerStore } from '../domain/customers.ts';

interface Row {
  readonly id: string;
  readonly subject: string;
  readonly sealed: Buffer;
  readonly time_zone: string;
  readonly locale: string;
  readonly created_at: Date;
  readonly updated_at: Date;
}

type Personal = Pick<CustomerFields, 'email' | 'name' | 'address' | 'taxId'>;

const COLUMNS = 'id, subject, sealed, time_zone, locale, created_at, updated_at';

export interface CustomerTableDeps {
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
  readonly vault: Vault;
  /** Of addresses. */
  readonly emails: BlindIndex;
}

export function createCustomerTable({ pool, vault, emails }: CustomerTableDeps): CustomerStore {
  const seal = (id: string, { email, name, address, taxId }: Personal): Buffer =>
    vault.seal(JSON.stringify({ email, name, address, taxId }), customerContext(id));
  const indexOf = (email: string): Buffer => emails.of(foldedEmail(email));

  const customerOf = (row: Row): Customer => openedCustomer(vault, row);

  return {
    async create({ id, subject, timeZone, locale, ...personal }) {
      await pool().query(
        `INSERT INTO customers (id, subject, sealed, email_index, time_zone, locale)
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (id) DO NOTHING`,
        [id, subject, seal(id, personal), indexOf(personal.email), timeZone, locale],
      );
      const { rows } = await pool().query<Row>(`SELECT ${COLUMNS} FROM customers WHERE id = $1`, [id]);
      const [row] = rows;
      if (row === undefined) throw new Error('The customer that was made is gone');
      return customerOf(row);
    },
    async find(id, owner) {
      const { rows } = await pool().query<Row>(
        `SELECT ${COLUMNS} FROM customers WHERE id = $1 AND ($2::text IS NULL OR subject = $2)`,
        [id, owner],
      );
      return rows.map(customerOf)[0];
    },
    async list({ owner, email, page }) {
      const query: NewestQuery = {
        table: 'customers',
        columns: COLUMNS,
        where: '($1::text IS NULL OR subject = $1) AND ($2::bytea[] IS NULL OR email_index = ANY($2))',
        parameters: [owner, email === undefined ? undefined : emails.candidates(foldedEmail(email))],
        page,
      };
      const { rows, ...rest } = await readNewest<Row>(pool(), query);
      return { rows: rows.map(customerOf), ...rest };
    },
    update: (id, owner, change) =>
      inTransaction(pool(), async (client) => {
        const { rows } = await client.query<Row>(
          `SELECT ${COLUMNS} FROM customers WHERE id = $1 AND ($2::text IS NULL OR subject = $2) FOR UPDATE`,
          [id, owner],
        );
        const [row] = rows;
        if (row === undefined) return undefined;
        const changed = { ...customerOf(row), ...change };
        const { rows: updated } = await client.query<Row>(
          `UPDATE customers SET sealed = $2, email_index = $3, time_zone = $4, locale = $5, updated_at = now()
           WHERE id = $1 RETURNING ${COLUMNS}`,
          [id, seal(id, changed), indexOf(changed.email), changed.timeZone, changed.locale],
        );
        return updated.map(customerOf)[0];
      }),
  };
}

/** Reads one for what is written in the same transaction. @throws Error where there is none. */
export async function customerFor(client: PoolClient, vault: Vault, id: string): Promise<Customer> {
  const { rows } = await client.query<Row>(`SELECT ${COLUMNS} FROM customers WHERE id = $1`, [id]);
  const [row] = rows;
  if (row === undefined) throw new Error('The customer is gone');
  return openedCustomer(vault, row);
}

function openedCustomer(vault: Vault, row: Row): Customer {
  const personal: Personal = JSON.parse(vault.open(row.sealed, customerContext(row.id)).toString());
  const { id, subject, time_zone: timeZone, locale, created_at: createdAt, updated_at: updatedAt } = row;
  return { ...personal, id, subject, timeZone, locale, createdAt, updatedAt };
}

/** What a customer is sealed for. */
export function customerContext(id: string): string {
  return `customer ${id}`;
}
