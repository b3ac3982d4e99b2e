import { randomUUID } from 'node:crypto';
import type { PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { Vault } from '@rollcall/platform/vault.ts';
import type { ProviderName } from '../domain/ports.ts';

/** What a provider is asked to do while nobody waits for it (docs/decisions/0421). */
export interface Errand {
  readonly provider: ProviderName;
  /** To keep a method no longer, or to let nobody pay at a checkout any more. */
  readonly kind: 'forget_method' | 'close_checkout';
  /** What the provider calls it. That of a method is a secret. */
  readonly reference: string;
}

/** Puts it into the queue, in the transaction of what it follows from. */
export type QueueErrand = (client: PoolClient, errand: Errand) => Promise<void>;

export function createErrandQueue(vault: Vault): QueueErrand {
  return async (client, { provider, kind, reference }) => {
    const id = randomUUID();
    const sealed = vault.seal(reference, errandContext(id));
    await client.query('INSERT INTO errands (id, provider, kind, sealed) VALUES ($1, $2, $3, $4)', [
      id,
      provider,
      kind,
      sealed,
    ]);
  };
}

/** What the reference of an errand is sealed for. */
export function errandContext(id: string): string {
  return `errand ${id}`;
}
