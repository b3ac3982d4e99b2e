import { randomUUID } from 'node:crypto';
import type { Pool, PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { BlindIndex, Vault } from '@rollcall/platform/vault.ts';
import type { ProviderName, StoredMethod } from '../../domain/ports.ts';
import type { QueueErrand } from '../../errands/queue.ts';
import type { PaymentMethod } from '../domain/methods.ts';

interface Row {
  readonly id: string;
  readonly customer_id: string;
  readonly provider: ProviderName;
  readonly sealed: Buffer;
  readonly usable: boolean;
  readonly created_at: Date;
}

const COLUMNS = 'id, customer_id, provider, sealed, usable, created_at';

interface KeptMethod {
  readonly customerId: string;
  readonly provider: ProviderName;
  readonly method: StoredMethod;
}

/** Methods of customers, inside of whatever transaction. */
export interface MethodRows {
  /** Of customers, the newest first. */
  listOf(client: Pool | PoolClient, customerIds: readonly string[]): Promise<readonly PaymentMethod[]>;
  /** @returns its id, also where it is kept already. */
  keep(client: PoolClient, kept: KeptMethod): Promise<string>;
  /** The provider says that it is gone. */
  discard(client: Pool | PoolClient, gone: Omit<KeptMethod, 'customerId'>): Promise<void>;
  /** Has its provider forget one that is not to be kept. */
  forget(client: PoolClient, method: Omit<KeptMethod, 'customerId'>): Promise<void>;
  /** Forgets it, for subscriptions and at its provider too. @returns whether the customer had it. */
  remove(client: PoolClient, method: { readonly customerId: string; readonly methodId: string }): Promise<boolean>;
}

export interface MethodRowsDeps {
  readonly vault: Vault;
  /** Finds a method by what its provider calls it. */
  readonly tokens: BlindIndex;
  readonly queueErrand: QueueErrand;
}

export function createMethodRows({ vault, tokens, queueErrand }: MethodRowsDeps): MethodRows {
  const methodOf = ({ id, sealed, customer_id: customerId, created_at: createdAt, ...row }: Row): PaymentMethod => ({
    ...row,
    id,
    customerId,
    createdAt,
    method: { token: vault.open(sealed, methodContext(id)).toString() },
  });
  const forget: MethodRows['forget'] = (client, { provider, method }) =>
    queueErrand(client, { provider, kind: 'forget_method', reference: method.token });
  return {
    forget,
    async listOf(client, customerIds) {
      const { rows } = await client.query<Row>(
        `SELECT ${COLUMNS} FROM payment_methods WHERE customer_id = ANY($1) ORDER BY created_at DESC, id DESC`,
        [customerIds],
      );
      return rows.map(methodOf);
    },
    async keep(client, { customerId, provider, method: { token } }) {
      const id = randomUUID();
      const { rows: known } = await client.query<{ id: string }>(
        `UPDATE payment_methods SET usable = true
         WHERE customer_id = $1 AND provider = $2 AND token_index = ANY($3) RETURNING id`,
        [customerId, provider, tokens.candidates(token)],
      );
      const [row] = known;
      if (row !== undefined) return row.id;
      await client.query(
        `INSERT INTO payment_methods (id, customer_id, provider, sealed, token_index) VALUES ($1, $2, $3, $4, $5)`,
        [id, customerId, provider, vault.seal(token, methodContext(id)), tokens.of(token)],
      );
      return id;
    },
    async remove(client, { customerId, methodId }) {
      const where = [methodId, customerId];
      await client.query('UPDATE subscriptions SET method_id = NULL WHERE method_id = $1 AND customer_id = $2', where);
      const { rows } = await client.query<Row>(
        `DELETE FROM payment_methods WHERE id = $1 AND customer_id = $2 RETURNING ${COLUMNS}`,
        where,
      );
      for (const removed of rows.map(methodOf)) await forget(client, removed);
      return rows.length === 1;
    },
    async discard(client, { provider, method: { token } }) {
      await client.query('UPDATE payment_methods SET usable = false WHERE provider = $1 AND token_index = ANY($2)', [
        provider,
        tokens.candidates(token),
      ]);
    },
  };
}

/** What the token of a method is sealed for. */
export function methodContext(id: string): string {
  return `payment method ${id}`;
}
