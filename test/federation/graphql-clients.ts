import { createClient as createEventsClient } from 'graphql-sse';
import { createClient } from 'graphql-ws';
import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';

/** What has come of an operation so far. */
export interface Heard {
  readonly answers: unknown[];
  /** `complete`, or the error. */
  ended?: unknown;
  leave(): void;
}

/** A client of GraphQL for operations whose answers come by themselves. */
interface GraphqlClient {
  readonly subscribe: (
    operation: { query: string; variables?: Record<string, unknown> },
    sink: { next(value: unknown): void; error(error: unknown): void; complete(): void },
  ) => () => void;
  dispose(): unknown;
}

interface ClientOptions {
  /** `http://host:port` of federation or a gateway. */
  readonly url: string;
  readonly token?: string | undefined;
  /** Whether the token is among the header fields, which browsers cannot set for WebSockets. */
  readonly asHeader?: boolean;
  /** Further header fields; by WebSocket in `connection_init`, as browsers have to. */
  readonly fields?: Readonly<Record<string, string>>;
  /** Of GraphQL; that of the whole graph when absent. */
  readonly path?: string;
}

export type Transport = 'WebSocket' | 'events';

/** graphql-ws or graphql-sse, which does not connect again by itself; until the test is over. */
export function graphqlClient(transport: Transport, options: ClientOptions): GraphqlClient {
  const client = transport === 'WebSocket' ? webSocketClient(options) : eventsClient(options);
  onTestFinished(async () => {
    await client.dispose();
  });
  return client;
}

function webSocketClient({
  url,
  token,
  asHeader = false,
  fields = {},
  path = '/api/graphql',
}: ClientOptions): GraphqlClient {
  const shown = token === undefined ? {} : { authorization: `Bearer ${token}` };
  class WithHeaders extends WebSocket {
    constructor(address: string, protocols: string[]) {
      super(address, protocols, { headers: asHeader ? shown : {} });
    }
  }
  return createClient({
    url: `${url.replace('http', 'ws')}${path}`,
    webSocketImpl: WithHeaders,
    retryAttempts: 0,
    connectionParams: { ...fields, ...(asHeader ? {} : shown) },
  });
}

function eventsClient({ url, token, fields = {}, path = '/api/graphql' }: ClientOptions): GraphqlClient {
  return createEventsClient({
    url: `${url}${path}`,
    retryAttempts: 0,
    headers: { ...fields, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
  });
}

export function listen(client: GraphqlClient, query: string, variables: Record<string, unknown> = {}): Heard {
  const heard: Heard = { answers: [], leave: () => undefined };
  heard.leave = client.subscribe(
    { query, variables },
    {
      next: (value) => void heard.answers.push(value),
      error: (error) => void (heard.ended ??= error),
      complete: () => void (heard.ended ??= 'complete'),
    },
  );
  return heard;
}
