import { bearerToken } from '../../admission/bearer.ts';

/** The subprotocol of GraphQL, whose first message may show who calls. */
export const GRAPHQL_PROTOCOL = 'graphql-transport-ws';

/** The first message of a client of GraphQL. */
export interface ConnectionInit {
  readonly token: string;
  /** The message without the token, for the service. */
  readonly rest: string;
}

/**
 * Pure. Browsers cannot set header fields, so clients of GraphQL show their token in `connection_init`.
 *
 * @returns undefined where it is no such message, or shows none.
 */
export function readConnectionInit(text: string): ConnectionInit | undefined {
  try {
    const message: unknown = JSON.parse(text);
    if (!isObject(message) || message['type'] !== 'connection_init' || !isObject(message['payload'])) return undefined;
    const entries = Object.entries(message['payload']);
    const shown = entries.find(([name]) => isAuthorization(name))?.[1];
    const token = typeof shown === 'string' ? bearerToken(shown) : undefined;
    if (token === undefined) return undefined;
    const payload = Object.fromEntries(entries.filter(([name]) => !isAuthorization(name)));
    return { token, rest: JSON.stringify({ ...message, payload }) };
  } catch {
    return undefined;
  }
}

function isAuthorization(name: string): boolean {
  return name.toLowerCase() === 'authorization';
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
