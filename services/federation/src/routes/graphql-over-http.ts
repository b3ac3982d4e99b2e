import type { IncomingHttpHeaders } from 'node:http';
import { invalidRequest } from '@rollcall/platform/common-errors.ts';
import { getOperationAST, OperationTypeNode, parse } from 'graphql/index.js';

/** Of answers of GraphQL over HTTP: with it the status says whether the request was executed. */
export const RESPONSE_TYPE = 'application/graphql-response+json';

/** A page of another origin can send none of them without asking first (Fetch, "CORS-safelisted request-header"). */
const PREFLIGHTED = [
  'graphql-require-preflight',
  'apollo-require-preflight',
  'x-apollo-operation-name',
  'x-requested-with',
];

/** Pure. Whether no browser sent the request for a page that must not read the answer. */
export function hasPreflight(headers: IncomingHttpHeaders): boolean {
  return PREFLIGHTED.some((name) => headers[name] !== undefined && headers[name] !== '');
}

/** Pure. The type of the answer: JSON unless the caller names the type of GraphQL, and likes JSON no better. */
export function mediaTypeFor(accept = ''): string {
  const ranges = accept.split(',').map(rangeOf);
  const ofGraphql = ranges.find(({ type }) => type === RESPONSE_TYPE)?.quality ?? 0;
  const ofJson = ranges.find(({ type }) => type === 'application/json')?.quality ?? 0;
  return ofGraphql > 0 && ofGraphql >= ofJson ? RESPONSE_TYPE : 'application/json';
}

function rangeOf(range: string): { readonly type: string; readonly quality: number } {
  const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
  const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
  return { type, quality: quality === undefined ? 1 : Number(quality) || 0 };
}

/** More than any query that fits into a URL. */
const MOST_TOKENS = 5000;

/** Pure. Whether the document would change something. What is no document is for others to refuse. */
export function isMutation(query: string, operationName: string | undefined): boolean {
  try {
    const operation = getOperationAST(parse(query, { maxTokens: MOST_TOKENS, noLocation: true }), operationName);
    return operation?.operation === OperationTypeNode.MUTATION;
  } catch {
    return false;
  }
}

/** @param text of a query string. @throws ServiceError INVALID_REQUEST where it is no JSON object. */
export function variablesOf(text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  if (text === undefined || text === '') return undefined;
  const refused = invalidRequest([{ path: 'query/variables', message: 'must be a JSON object' }]);
  try {
    const parsed: unknown = JSON.parse(text);
    if (parsed === null) return undefined;
    if (typeof parsed !== 'object' || Array.isArray(parsed)) throw refused;
    return Object.fromEntries(Object.entries(parsed));
  } catch {
    throw refused;
  }
}
