import { EXPANSION_LIMITS, excesses, type GraphqlLimits } from '@rollcall/platform/graphql/limits.ts';
import { type DocumentNode, Lexer, Source, TokenKind } from 'graphql/index.js';
import { type Refused, refusals } from './errors.ts';

/** What an operation may ask for. */
export interface OperationLimits extends Pick<GraphqlLimits, 'depth' | 'aliases' | 'rootFields' | 'directives'> {
  /** Of the document, with all its operations and fragments. */
  readonly tokens: number;
  /** Highest cost, as it is estimated (docs/decisions/0480). */
  readonly cost: number;
  /** Items of a list of which nothing says how long it is. */
  readonly listSize: number;
  /** Whether the schema may be asked for. */
  readonly allowsIntrospection: boolean;
}

const CODES = {
  depth: 'DEPTH_LIMIT_EXCEEDED',
  aliases: 'ALIAS_LIMIT_EXCEEDED',
  rootFields: 'ROOT_FIELD_LIMIT_EXCEEDED',
  directives: 'DIRECTIVE_LIMIT_EXCEEDED',
  // A planner puts fragments in; it cannot be stopped, and its stack is not ours.
  selections: 'SELECTION_LIMIT_EXCEEDED',
  nesting: 'SELECTION_LIMIT_EXCEEDED',
} as const satisfies Record<keyof GraphqlLimits, string>;

/** Pure. Why a document is too large to be looked at any further; undefined: it is not. */
export function documentExcess(document: DocumentNode, limits: OperationLimits): Refused | undefined {
  const found = excesses(document, { ...limits, ...EXPANSION_LIMITS });
  if (found.length === 0) return undefined;
  return refusals(
    found.map(({ limit, most, message, operation }) => ({
      message,
      nodes: [operation],
      extensions: { code: CODES[limit], limit: most },
    })),
  );
}

/** Pure. Why a document that could not be parsed was no more than too long; undefined: that is not why. */
export function tokenExcess(query: string, most: number): Refused | undefined {
  if (!hasMoreTokens(query, most)) return undefined;
  const message = `The document has more than ${most} tokens`;
  return refusals([{ message, extensions: { code: 'TOKEN_LIMIT_EXCEEDED', limit: most } }]);
}

function hasMoreTokens(query: string, most: number): boolean {
  const lexer = new Lexer(new Source(query));
  try {
    for (let tokens = 0; tokens <= most; tokens += 1) if (lexer.advance().kind === TokenKind.EOF) return false;
    return true;
  } catch {
    // What is no token is refused for that.
    return false;
  }
}
