import { hash } from 'node:crypto';
import type { FieldFault } from '@rollcall/platform/common-errors.ts';
import { isExecutableDefinitionNode, parse, stripIgnoredCharacters } from 'graphql/index.js';

/** A document that clients may ask for by its id. */
export interface PublishedDocument {
  readonly id: string;
  /** Of its text without what GraphQL ignores; SHA-256. */
  readonly hash: string;
  readonly document: string;
}

/** What an id may have in front (GraphQL over HTTP, "Persisted Documents"). */
const HASH_PREFIX = 'sha256:';

/** Pure. The id by which a document is kept. */
export function documentIdOf(sent: string): string {
  return sent.startsWith(HASH_PREFIX) ? sent.slice(HASH_PREFIX.length) : sent;
}

/** Pure. The same for documents that differ in white space and comments alone. @throws GraphQLError for what has no tokens of GraphQL. */
export function contentHash(document: string): string {
  return hash('sha256', stripIgnoredCharacters(document));
}

/**
 * Pure. Documents as they are published, and why some cannot be.
 *
 * @param texts by id. @param maxTokens as for what clients send.
 */
export function publishing(
  texts: Readonly<Record<string, string>>,
  maxTokens: number,
): { readonly documents: readonly PublishedDocument[]; readonly faults: readonly FieldFault[] } {
  const documents: PublishedDocument[] = [];
  const faults: FieldFault[] = [];
  for (const [sent, document] of Object.entries(texts)) {
    const id = documentIdOf(sent);
    const message = faultOf(document, maxTokens);
    if (message === undefined) documents.push({ id, hash: contentHash(document), document });
    else faults.push({ path: `body/documents/${sent}`, message });
  }
  return { documents, faults };
}

function faultOf(document: string, maxTokens: number): string | undefined {
  // PostgreSQL has no such text.
  if (document.includes('\0')) return 'must not have the character U+0000';
  try {
    const { definitions } = parse(document, { maxTokens, noLocation: true });
    const isExecutable = definitions.every(isExecutableDefinitionNode);
    return isExecutable ? undefined : 'must have operations and fragments alone';
  } catch (error) {
    return `must be a document of GraphQL: ${error instanceof Error ? error.message : String(error)}`;
  }
}
