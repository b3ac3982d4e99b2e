import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { type SubgraphSource, TestSubgraph } from '@rollcall/federation/testing/subgraph.ts';
import { onTestFinished } from 'vitest';

/** A service with GraphQL, over HTTP. */
export interface SubgraphServer {
  /** Of its GraphQL. */
  readonly url: string;
  /** Without its path. */
  readonly base: string;
  /** Headers of the operations that it was asked, but for its schema. */
  readonly asked: readonly IncomingHttpHeaders[];
  /** How often its schema was read. */
  readonly reads: () => number;
  /** From now on it has another schema. */
  become(source: SubgraphSource): void;
  /** From now on it says that it has another schema, and answers as before. */
  claim(sdl: string): void;
  /** From now on every request is answered so, until undefined. */
  misbehave(answer: ((response: ServerResponse) => void) | undefined): void;
  /** Nobody listens there any more. */
  stop(): Promise<void>;
}

export interface SubgraphServerOptions {
  readonly path?: string;
  /** Whether it has `_service`; it has by default. */
  readonly isFederated?: boolean;
}

/** Starts a subgraph on this machine, until the test is over. */
export async function startSubgraph(
  source: SubgraphSource,
  options: SubgraphServerOptions = {},
): Promise<SubgraphServer> {
  const { path = '/graphql', isFederated = true } = options;
  const asked: IncomingHttpHeaders[] = [];
  let { sdl } = source;
  let subgraph = new TestSubgraph(source);
  let misbehaviour: ((response: ServerResponse) => void) | undefined;
  let reads = 0;
  const server = createServer((request, response) => {
    void answer(request.url ?? '', text(request), response);
  });

  async function answer(url: string, body: Promise<string>, response: ServerResponse): Promise<void> {
    const sent = await body.catch(() => '');
    if (misbehaviour !== undefined) {
      misbehaviour(response);
      return;
    }
    if (url !== path) {
      response.writeHead(404).end('<h1>Not here</h1>');
      return;
    }
    const { query, variables = {}, operationName } = JSON.parse(sent);
    response.setHeader('content-type', 'application/json');
    if (isFederated && query.includes('_service')) {
      reads += 1;
      response.end(JSON.stringify({ data: { _service: { sdl } } }));
      return;
    }
    if (!query.includes('__schema')) asked.push(response.req.headers);
    response.end(
      JSON.stringify(await subgraph.answer({ subgraph: '', kind: 'query', query, variables, operationName })),
    );
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  async function stop(): Promise<void> {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  }

  onTestFinished(stop);
  return {
    url: `${base}${path}`,
    base,
    asked,
    reads: () => reads,
    become(next) {
      sdl = next.sdl;
      subgraph = new TestSubgraph(next);
    },
    claim(other) {
      sdl = other;
    },
    misbehave(next) {
      misbehaviour = next;
    },
    stop,
  };
}
