import type { PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { Vault } from '@rollcall/platform/vault.ts';
import type { SubscriptionRecord } from '../domain/subscriptions.ts';
import { holdCustomer } from './customer-rows.ts';

type Metadata = SubscriptionRecord['metadata'];

/** What metadata of a subscription is sealed for. */
export function subscriptionContext(id: string): string {
  return `subscription ${id}`;
}

/** @returns null where there is none. */
export function sealedMetadata(vault: Vault, id: string, metadata: Metadata): Buffer | null {
  return Object.keys(metadata).length === 0 ? null : vault.seal(JSON.stringify(metadata), subscriptionContext(id));
}

/** @returns nothing where none is kept. */
export function openedMetadata(vault: Vault, { id, sealed }: { readonly id: string; readonly sealed: Buffer | null }) {
  const metadata: Metadata = sealed === null ? {} : JSON.parse(vault.open(sealed, subscriptionContext(id)).toString());
  return metadata;
}

/**
 * Writes the metadata of a record whose row the transaction has.
 *
 * @throws ServiceError CUSTOMER_ERASED.
 */
export async function writeMetadata(client: PoolClient, vault: Vault, record: SubscriptionRecord): Promise<void> {
  const { customerId, metadata, subscription } = record;
  await holdCustomer(client, customerId);
  await client.query('UPDATE subscriptions SET sealed = $2 WHERE id = $1', [
    subscription.id,
    sealedMetadata(vault, subscription.id, metadata),
  ]);
}

/** Locks what a customer has subscribed to until the transaction ends: behind payments, before the customer. */
export async function lockSubscriptionsOf(client: PoolClient, customerId: string): Promise<void> {
  await client.query('SELECT FROM subscriptions WHERE customer_id = $1 ORDER BY id FOR UPDATE', [customerId]);
}

/** Leaves no metadata in what a customer has subscribed to. */
export async function forgetMetadata(client: PoolClient, customerId: string): Promise<void> {
  await client.query('UPDATE subscriptions SET sealed = NULL WHERE customer_id = $1 AND sealed IS NOT NULL', [
    customerId,
  ]);
}
