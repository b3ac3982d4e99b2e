import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import type { GraphError } from '../../execution/types.ts';
import { GraphqlBody } from '../graphql-requests.ts';

/** The subprotocol: https://github.com/graphql/graphql-over-http/blob/main/rfcs/GraphQLOverWebSocket.md */
export const SUBPROTOCOL = 'graphql-transport-ws';

/** What a connection ends with: codes of the protocol, and of RFC 6455. */
export const closeCodes = {
  GOING_AWAY: 1001,
  TOO_SLOW: 1013,
  BAD_MESSAGE: 4400,
  NOT_ACKNOWLEDGED: 4401,
  /** Clients try again with credentials that are new. */
  FORBIDDEN: 4403,
  INIT_TIMEOUT: 4408,
  ID_TAKEN: 4409,
  INIT_TWICE: 4429,
} as const;

const strict = { additionalProperties: false } as const;
const Id = Type.String({ minLength: 1, maxLength: 128 });
const Anything = Type.Optional(Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()]));

const ClientMessage = Type.Union([
  Type.Object({ type: Type.Literal('connection_init'), payload: Anything }, strict),
  // Clients add members of their own to the operation.
  Type.Object({ type: Type.Literal('subscribe'), id: Id, payload: Type.Object({ ...GraphqlBody.properties }) }, strict),
  Type.Object({ type: Type.Literal('complete'), id: Id }, strict),
  Type.Object({ type: Type.Literal('ping'), payload: Anything }, strict),
  Type.Object({ type: Type.Literal('pong'), payload: Anything }, strict),
]);
export type ClientMessage = Static<typeof ClientMessage>;

const check = Compile(ClientMessage);

/** @returns undefined where it is no message of a client. */
export function readMessage(text: string): ClientMessage | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return check.Check(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** @param answer JSON. */
export function nextMessage(id: string, answer: string): string {
  return `{"id":${JSON.stringify(id)},"type":"next","payload":${answer}}`;
}

/** The last message of an operation. */
export function endMessage(id: string, errors: readonly GraphError[] | undefined): string {
  return JSON.stringify(errors === undefined ? { id, type: 'complete' } : { id, type: 'error', payload: errors });
}

/** As of the head of a request. */
const MOST_OF_FIELDS = 16_384;
/** What rules can name: a call with another name is refused before it is sent, as if its service were away. */
const NAME = /^[A-Za-z0-9-]+$/;
const VALUE = /^[\t\x20-\x7e]+$/;

/** What a client sets as header fields of its requests, where it may set none. */
export function fieldsIn({ payload }: { readonly payload?: Readonly<Record<string, unknown>> | null }) {
  const fields: Record<string, string> = {};
  let size = 0;
  for (const [name, value] of Object.entries(payload ?? {})) {
    if (typeof value !== 'string' || !NAME.test(name) || !VALUE.test(value)) continue;
    size += name.length + value.length;
    if (size > MOST_OF_FIELDS) break;
    fields[name.toLowerCase()] = value;
  }
  return fields;
}

/** What a client shows of who it is, as it would among the header fields of a request. */
export function authorizationIn({ payload }: { readonly payload?: Readonly<Record<string, unknown>> | null }) {
  const entry = Object.entries(payload ?? {}).find(([name]) => name.toLowerCase() === 'authorization');
  return typeof entry?.[1] === 'string' ? entry[1] : undefined;
}
