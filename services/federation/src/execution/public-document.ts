import { transformSupergraphToPublicSchema } from '@theguild/federation-composition';
import { type DocumentNode, Kind } from 'graphql/index.js';
import { withDefinitions } from './definitions.ts';

/**
 * Pure. What clients see of a supergraph. The library leaves hidden types in the unions that they are
 * in, and no schema can be built of that.
 */
export function publicDocument(supergraph: DocumentNode): DocumentNode {
  const document = transformSupergraphToPublicSchema(supergraph);
  const known = new Set(document.definitions.map((node) => ('name' in node ? node.name?.value : undefined)));
  return withDefinitions(document, (node) => {
    if (node.kind !== Kind.UNION_TYPE_DEFINITION) return node;
    return { ...node, types: node.types?.filter(({ name }) => known.has(name.value)) ?? [] };
  });
}
