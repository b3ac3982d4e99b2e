import { isUuid } from '@rollcall/platform/http/resources.ts';
import type { Pool, PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { Vault } from '@rollcall/platform/vault.ts';
import { paymentError } from '../../domain/errors.ts';
import type { Owner } from '../../domain/owner.ts';
import type { Customer, CustomerFields } from '../domain/customers.ts';

/** Of the table `customers`. */
export interface CustomerRow {
  readonly id: string;
  readonly subject: string;
  readonly sealed: Buffer;
  readonly time_zone: string;
  readonly locale: string;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly erased_at: Date | null;
}

/** What is sealed in a row. */
export type PersonalFields = Pick<CustomerFields, 'email' | 'name' | 'address' | 'taxId' | 'metadata'>;

export const CUSTOMER_COLUMNS = 'id, subject, sealed, time_zone, locale, created_at, updated_at, erased_at';

export async function findCustomer(
  client: Pool | PoolClient,
  vault: Vault,
  { id, owner }: { readonly id: string; readonly owner: Owner },
): Promise<Customer | undefined> {
  if (!isUuid(id)) return undefined;
  const { rows } = await client.query<CustomerRow>(
    `SELECT ${CUSTOMER_COLUMNS} FROM customers WHERE id = $1 AND ($2::text IS NULL OR subject = $2)`,
    [id, owner],
  );
  return rows.map((row) => openedCustomer(vault, row))[0];
}

/** Reads one for what is written in the same transaction. @throws Error where there is none. */
export async function customerFor(client: PoolClient, vault: Vault, id: string): Promise<Customer> {
  const customer = await findCustomer(client, vault, { id, owner: undefined });
  if (customer === undefined) throw new Error('The customer is gone');
  return customer;
}

/**
 * Keeps a customer from being erased until the transaction ends, in which something is made for it.
 *
 * @param subject whose it has to be; anybody's when absent.
 * @throws ServiceError CUSTOMER_NOT_FOUND, CUSTOMER_ERASED.
 */
export async function holdCustomer(client: PoolClient, id: string, subject?: string): Promise<void> {
  const { rows } = await client.query<Pick<CustomerRow, 'erased_at'>>(
    'SELECT erased_at FROM customers WHERE id = $1 AND ($2::text IS NULL OR subject = $2) FOR SHARE',
    [id, subject],
  );
  const [row] = rows;
  if (row === undefined) throw paymentError('CUSTOMER_NOT_FOUND');
  if (row.erased_at !== null) throw paymentError('CUSTOMER_ERASED');
}

export function sealedCustomer(vault: Vault, id: string, personal: PersonalFields): Buffer {
  const { email, name, address, taxId, metadata } = personal;
  return vault.seal(JSON.stringify({ email, name, address, taxId, metadata }), customerContext(id));
}

export function openedCustomer(vault: Vault, row: CustomerRow): Customer {
  // Rows of before have no metadata.
  const personal: Omit<PersonalFields, 'metadata'> & Partial<PersonalFields> = JSON.parse(
    vault.open(row.sealed, customerContext(row.id)).toString(),
  );
  const { id, subject, time_zone: timeZone, locale, created_at: createdAt, updated_at: updatedAt } = row;
  const erasedAt = row.erased_at ?? undefined;
  return { metadata: {}, ...personal, id, subject, timeZone, locale, createdAt, updatedAt, erasedAt };
}

/** What a customer is sealed for. */
export function customerContext(id: string): string {
  return `customer ${id}`;
}
