import { hash } from 'node:crypto';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { LRUCache } from 'lru-cache';
import { Counter, type Registry } from 'prom-client';
import { type Refused, refused } from '../execution/errors.ts';
import type { PersistedQueries, SentDocument } from './persisted-queries.ts';
import type { TrustedDocuments } from './trusted-documents.ts';

/** What becomes of documents that nobody published. */
type Trust = 'off' | 'log' | 'enforce';

/** What a request names: a document by its text, its hash or its id. */
export interface NamedDocument extends SentDocument {
  /** Of a document that was published. */
  readonly id: string | undefined;
}

/** The documents that clients may ask for. */
export interface Documents {
  /** @returns the text of the document, or why there is none. @throws where it cannot be known whether it is trusted. */
  read(named: NamedDocument): Promise<string | Refused>;
  /** Keeps a document that was sent with its hash, once it has turned out to be valid. Never rejects. */
  keep(named: NamedDocument): Promise<void>;
}

export interface DocumentsOptions {
  readonly persisted: PersistedQueries;
  readonly trusted: TrustedDocuments;
  readonly trust: Trust;
  readonly log: Logger;
  readonly metrics: Registry;
}

/** Documents that are told of once in a while. */
const TOLD = { max: 1000, ttl: 3_600_000 };

export function createDocuments({ persisted, trusted, trust, log, metrics }: DocumentsOptions): Documents {
  const told = new LRUCache<string, true>(TOLD);
  const untrusted = new Counter({
    name: 'rollcall_federation_untrusted_documents_total',
    help: 'Requests for documents that nobody published, where that is logged or refused.',
    registers: [metrics],
  });

  function tell(text: string): void {
    const digest = hash('sha256', text);
    if (told.has(digest)) return;
    told.set(digest, true);
    // The text may have data of people in it.
    log.warn({ sha256: digest }, 'a document was executed that is not trusted');
  }

  return {
    keep: (named) => persisted.keep(named),
    async read(named) {
      const { id, query, hash: digest } = named;
      if (id !== undefined)
        return (await trusted.find(id)) ?? refused('No document was published under this id', 'DOCUMENT_NOT_FOUND');
      const text = await persisted.read(named);
      if (typeof text !== 'string') {
        if (query !== undefined || digest === undefined) return text;
        // The client sends the text where this cannot be known.
        return (await trusted.find(digest).catch(() => undefined)) ?? text;
      }
      if (trust === 'off') return text;
      if (await (trust === 'log' ? trusted.has(text).catch(() => true) : trusted.has(text))) return text;
      untrusted.inc();
      if (trust === 'log') {
        tell(text);
        return text;
      }
      return refused('Only documents that were published are executed here', 'DOCUMENT_NOT_TRUSTED');
    },
  };
}
