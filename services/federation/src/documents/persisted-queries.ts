import { hash as digest } from 'node:crypto';
import type { Clock } from '@rollcall/platform/clock.ts';
import { errorMessage } from '@rollcall/platform/errors.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { LRUCache } from 'lru-cache';
import { type Refused, refused } from '../execution/errors.ts';

/** What a client sends of a document: its text, its SHA-256 in hexadecimal digits, or both. */
export interface SentDocument {
  readonly query: string | undefined;
  readonly hash: string | undefined;
}

/** Where replicas have documents in common. Each call throws while the database is away. */
export interface PersistedQueryStore {
  find(hash: string): Promise<string | undefined>;
  /** Keeps a document, unless it is kept already. */
  add(hash: string, document: string): Promise<void>;
}

/** Documents that clients sent once, and then name by their hash (Apollo's automatic persisted queries). */
export interface PersistedQueries {
  /** @returns the text of the document, or why there is none. */
  read(sent: SentDocument): Promise<string | Refused>;
  /** Keeps a document that was sent with its hash, once it has turned out to be valid. Never rejects. */
  keep(sent: SentDocument): Promise<void>;
}

/** In one replica. */
const MOST_CHARACTERS = 8_000_000;
/** Documents that are not added again so soon: the database may have forgotten what a replica still knows. */
const ADDED = { max: 10_000, ttl: 60_000, ttlResolution: 0 } as const;

export interface PersistedQueriesOptions {
  /** Undefined: documents are not kept. */
  readonly store: PersistedQueryStore | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createPersistedQueries({ store, clock, log }: PersistedQueriesOptions): PersistedQueries {
  const known = new LRUCache<string, string>({ maxSize: MOST_CHARACTERS, sizeCalculation: ({ length }) => length });
  const added = new LRUCache<string, true>({ ...ADDED, perf: { now: () => clock.monotonicMs() } });

  async function find(from: PersistedQueryStore, hash: string): Promise<string | undefined> {
    const own = known.get(hash);
    if (own !== undefined) return own;
    try {
      const found = await from.find(hash);
      if (found !== undefined) known.set(hash, found);
      return found;
    } catch (error) {
      // The client sends the document then.
      log.warn({ message: errorMessage(error) }, 'persisted queries could not be read');
      return undefined;
    }
  }

  return {
    async read({ query, hash }) {
      if (hash === undefined) return query ?? '';
      if (query === undefined) {
        // Clients know the messages, too.
        if (store === undefined) return refused('PersistedQueryNotSupported', 'PERSISTED_QUERY_NOT_SUPPORTED');
        return (await find(store, hash)) ?? refused('PersistedQueryNotFound', 'PERSISTED_QUERY_NOT_FOUND');
      }
      if (digest('sha256', query) === hash) return query;
      return refused('sha256Hash is not the hash of the query', 'PERSISTED_QUERY_HASH_MISMATCH');
    },
    async keep({ query, hash }) {
      if (store === undefined || hash === undefined || query === undefined || added.has(hash)) return;
      // PostgreSQL has no such text.
      if (query.includes('\0')) return;
      known.set(hash, query);
      added.set(hash, true);
      try {
        await store.add(hash, query);
      } catch (error) {
        // Whoever sends it again, as another replica does not know it, has it added then.
        added.delete(hash);
        log.warn({ message: errorMessage(error) }, 'a persisted query could not be kept');
      }
    },
  };
}
