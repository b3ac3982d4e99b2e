import type { GatewayError } from '../../errors.ts';
import { GRAPHQL_PROTOCOL } from './connection-init.ts';

/** Of subscriptions-transport-ws, which older clients speak. */
const OLDER_PROTOCOL = 'graphql-ws';
/** Of both protocols. Whatever else a client sends may begin an operation. */
const BEGINS_NONE: ReadonlySet<unknown> = new Set([
  'connection_init',
  'ping',
  'pong',
  'complete',
  'stop',
  'connection_terminate',
]);

/** What a client of GraphQL sends. */
export interface ClientMessage {
  /** Of the operation that it begins; undefined: it has none. */
  readonly id: unknown;
  /** Whether it counts as a request. */
  readonly isOperation: boolean;
  /** For the service. */
  readonly data: Buffer | string;
}

/** Whether messages of a subprotocol begin operations. */
export function hasOperations(protocol: string): boolean {
  return protocol === GRAPHQL_PROTOCOL || protocol === OLDER_PROTOCOL;
}

/**
 * Pure. What does not count is written anew: services may read a message that has a member twice
 * otherwise than we do.
 */
export function readClientMessage(data: Buffer): ClientMessage {
  const message = parsed(data);
  const type: unknown = Reflect.get(message, 'type');
  const id: unknown = Reflect.get(message, 'id');
  const isOperation = !BEGINS_NONE.has(type);
  return { id, isOperation, data: isOperation ? data : JSON.stringify(message) };
}

function parsed(data: Buffer): object {
  try {
    const message: unknown = JSON.parse(data.toString());
    return typeof message === 'object' && message !== null ? message : {};
  } catch {
    return {};
  }
}

/** Pure. What a client is told of an operation that the service did not get. */
export function refusedOperation(protocol: string, id: unknown, { code, message, details }: GatewayError): string {
  const error = { message, extensions: { code, details } };
  return JSON.stringify({ id, type: 'error', payload: protocol === GRAPHQL_PROTOCOL ? [error] : error });
}
