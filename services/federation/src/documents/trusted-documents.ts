import { hash } from 'node:crypto';
import type { ListPage, NewestPage } from '@rollcall/platform/lists.ts';
import { LRUCache } from 'lru-cache';
import { contentHash, documentIdOf, type PublishedDocument } from './publishing.ts';

/** A document as it is listed. */
interface TrustedDocument {
  readonly client: string;
  readonly id: string;
  readonly document: string;
  readonly createdAt: Date;
}

/** Where replicas have published documents in common. Each call throws while the database is away. */
export interface TrustedDocumentStore {
  find(id: string): Promise<string | undefined>;
  /** @param hash of the content. */
  has(hash: string): Promise<boolean>;
  /**
   * Publishes documents of a client, all or none.
   *
   * @returns how many were not known, or the ids that other documents have.
   */
  publish(client: string, documents: readonly PublishedDocument[]): Promise<number | readonly string[]>;
  /** @param client undefined: of all. */
  list(page: ListPage, client: string | undefined): Promise<NewestPage<TrustedDocument>>;
  /** @param id undefined: all of the client. @returns how many. */
  remove(client: string, id: string | undefined): Promise<number>;
}

/** What was published, as requests need it. Each call throws where the database is away, unless it was found before. */
export interface TrustedDocuments {
  /** @returns the text of the document with the id. */
  find(id: string): Promise<string | undefined>;
  /** Whether a text is one of them, whatever its white space. What is no GraphQL is none. */
  has(text: string): Promise<boolean>;
}

/** For so long a replica does not hear of a document that was removed, */
const FRESH_MS = 60_000;
/** or of one that is published after it was asked for. */
const ABSENT_MS = 5000;
const MOST_CHARACTERS = 8_000_000;
/** What an entry takes beside its text. */
const CHARACTERS_OF_ENTRY = 100;
const BOUNDS = { maxSize: MOST_CHARACTERS, ttl: FRESH_MS };

export function createTrustedDocuments(store: Pick<TrustedDocumentStore, 'find' | 'has'>): TrustedDocuments {
  const byId = new LRUCache<string, { readonly document: string | undefined }>({
    ...BOUNDS,
    sizeCalculation: ({ document = '' }) => document.length + CHARACTERS_OF_ENTRY,
    async fetchMethod(id, stale, { options }) {
      const found = await orStale(async () => ({ document: await store.find(id) }), stale);
      if (found.document === undefined) options.ttl = ABSENT_MS;
      return found;
    },
  });
  const byText = new LRUCache<string, { readonly isTrusted: boolean }, string>({
    ...BOUNDS,
    sizeCalculation: () => CHARACTERS_OF_ENTRY,
    async fetchMethod(_key, stale, { options, context: content }) {
      const found = await orStale(async () => ({ isTrusted: await store.has(content) }), stale);
      if (!found.isTrusted) options.ttl = ABSENT_MS;
      return found;
    },
  });
  return {
    find: async (id) => (await byId.fetch(documentIdOf(id)))?.document,
    async has(text) {
      const content = contentOf(text);
      if (content === undefined) return false;
      return (await byText.fetch(hash('sha256', text), { context: content }))?.isTrusted === true;
    },
  };
}

/** What was found before, where nothing can be found now. */
async function orStale<Found>(find: () => Promise<Found>, stale: Found | undefined): Promise<Found> {
  try {
    return await find();
  } catch (error) {
    if (stale === undefined) throw error;
    return stale;
  }
}

function contentOf(text: string): string | undefined {
  try {
    return contentHash(text);
  } catch {
    return undefined;
  }
}
