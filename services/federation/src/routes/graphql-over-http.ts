import type { IncomingHttpHeaders } from 'node:http';
import type { ErrorKind } from '@rollcall/platform/errors.ts';
import { errorCatalogue } from '../errors.ts';
import type { GraphAnswer } from '../execution/graph.ts';

/** Of answers of GraphQL over HTTP: with it the status says whether the request was executed. */
export const RESPONSE_TYPE = 'application/graphql-response+json';

/** Of answers that are told one after the other. */
export const EVENT_STREAM_TYPE = 'text/event-stream';

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

/** As clients of Apollo's and of others send it. */
const CLIENT_NAMES = ['apollographql-client-name', 'graphql-client-name'];

/** Pure. What the client calls itself; undefined: nothing, or what is no name. */
export function clientNameOf(headers: IncomingHttpHeaders): string | undefined {
  const name = CLIENT_NAMES.map((header) => headers[header]).find((value) => value !== undefined);
  return typeof name === 'string' && /^[\w .:/@-]{1,64}$/.test(name) ? name : undefined;
}

/**
 * Pure. The type of the answer: JSON unless the caller names the type of GraphQL, and likes JSON no
 * better; server-sent events where it likes them better than both.
 */
export function mediaTypeFor(accept = ''): string {
  const ranges = accept.split(',').map(rangeOf);
  const qualityOf = (name: string) => ranges.find(({ type }) => type === name)?.quality ?? 0;
  const [ofGraphql, ofJson] = [qualityOf(RESPONSE_TYPE), qualityOf('application/json')];
  if (qualityOf(EVENT_STREAM_TYPE) > Math.max(ofGraphql, ofJson)) return EVENT_STREAM_TYPE;
  return ofGraphql > 0 && ofGraphql >= ofJson ? RESPONSE_TYPE : 'application/json';
}

function rangeOf(range: string): { readonly type: string; readonly quality: number } {
  const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
  const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
  return { type, quality: quality === undefined ? 1 : Number(quality) || 0 };
}

/** Pure. Why a request was refused, before it was executed; undefined: it was not. */
export function codeOf({ data, errors }: GraphAnswer): unknown {
  return data === undefined ? errors?.[0]?.extensions['code'] : undefined;
}

/** Where the client sends the document then. Many clients take any other status for the end. */
const ASKED_ANEW: readonly unknown[] = ['PERSISTED_QUERY_NOT_FOUND', 'PERSISTED_QUERY_NOT_SUPPORTED'];

/**
 * Pure. The status of an answer. What was refused is 200 for who does not know the type of GraphQL, and
 * takes any other status for an answer of a proxy; what is too much is not.
 */
export function statusOf(answer: GraphAnswer, type: string): number {
  const code = codeOf(answer);
  if (code === undefined) return 200;
  if (ASKED_ANEW.includes(code)) return type === RESPONSE_TYPE ? 400 : 200;
  const known = Object.entries<ErrorKind>(errorCatalogue).find(([name]) => name === code);
  return known?.[1].status ?? (type === RESPONSE_TYPE ? 400 : 200);
}
