import { EventEmitter, on, once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { buildFederationSchema } from '@mercuriusjs/federation';
import { fastify } from 'fastify';
import { type GraphQLSchema, graphql, isObjectType } from 'graphql/index.js';
import { createHandler } from 'graphql-sse/lib/use/http';
import { mercurius } from 'mercurius';
import { onTestFinished } from 'vitest';

/** What is told of. */
interface Told {
  readonly id: string;
  readonly name?: string | null;
}

/** A service with the subscription `joined` of users and `ticks`. */
export interface LiveSubgraph {
  readonly url: string;
  /** Tells all who have subscribed. */
  joins(user: Told): void;
  /** Nobody will join any more. */
  closes(): void;
  /** From now on it has another schema, which it does not answer by. */
  claims(sdl: string): void;
  /** How many subscriptions it has now. */
  listeners(): number;
  /** Header fields of the subscriptions that came. */
  readonly asked: readonly IncomingHttpHeaders[];
}

/** Its schema. */
export const LIVE_SDL = `
  extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])
  type User @key(fields: "id") { id: ID! name: String! }
  type Query { size: Int }
  type Mutation { grow: Int }
  type Subscription { joined(team: String): User! }
`;

/** Starts one on this machine, until the test is over, with subscriptions by mercurius or by graphql-sse. */
export async function startLiveSubgraph(transport: 'WebSocket' | 'events'): Promise<LiveSubgraph> {
  const users = new EventEmitter().setMaxListeners(0);
  const asked: IncomingHttpHeaders[] = [];
  let claimed: string | undefined;
  const subscribe = () => on(users, 'joined', { close: ['closed'] });
  const resolvers = {
    Query: { size: () => 3 },
    Mutation: { grow: () => 4 },
    Subscription: { joined: { subscribe, resolve: ([user]: readonly Told[]) => user } },
  };
  const start = transport === 'WebSocket' ? startMercurius : startEvents;
  return {
    url: await start(),
    joins: (user) => void users.emit('joined', user),
    closes: () => void users.emit('closed'),
    listeners: () => users.listenerCount('joined'),
    asked,
    claims: (sdl) => void (claimed = sdl),
  };

  async function startMercurius(): Promise<string> {
    const app = fastify({ forceCloseConnections: true });
    await app.register(mercurius, {
      schema: buildFederationSchema(LIVE_SDL),
      resolvers,
      path: '/graphql',
      subscription: {
        async onConnect() {
          return true;
        },
        context(_socket, request) {
          asked.push(request.headers);
          return {};
        },
      },
    });
    app.addHook('preHandler', async (request, reply) => {
      if (claimed !== undefined && JSON.stringify(request.body ?? '').includes('_service'))
        await reply.send({ data: { _service: { sdl: claimed } } });
    });
    onTestFinished(() => app.close());
    return `${await app.listen({ host: '127.0.0.1', port: 0 })}/graphql`;
  }

  async function startEvents(): Promise<string> {
    const schema = buildFederationSchema(LIVE_SDL);
    attach(schema, resolvers);
    const handle = createHandler({ schema });
    const server = createServer((request, response) => void answer(request, response));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    onTestFinished(async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`;

    async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
      if (request.headers.accept?.includes('text/event-stream') === true) {
        asked.push(request.headers);
        await handle(request, response);
        return;
      }
      if (request.method !== 'POST') {
        response.writeHead(405).end();
        return;
      }
      const { query, variables } = JSON.parse(await text(request));
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(await graphql({ schema, source: query, variableValues: variables })));
    }
  }
}

function attach(schema: GraphQLSchema, resolvers: Readonly<Record<string, Readonly<Record<string, object>>>>): void {
  for (const [name, fields] of Object.entries(resolvers)) {
    const type = schema.getType(name);
    if (!isObjectType(type)) continue;
    for (const [field, resolver] of Object.entries(fields))
      Object.assign(type.getFields()[field] ?? {}, typeof resolver === 'function' ? { resolve: resolver } : resolver);
  }
}
