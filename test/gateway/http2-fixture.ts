import { once } from 'node:events';
import { connect } from 'node:net';
import { ClientConnection, type ClientConnectionOptions } from '@rollcall/gateway/http2/client-connection.ts';
import type { ClientStream, StreamEnd } from '@rollcall/gateway/http2/client-stream.ts';
import { onTestFinished } from 'vitest';

/** The client's side of a connection, and what became of it. */
export interface TestConnection {
  readonly connection: ClientConnection;
  /** Once the server has spoken. */
  readonly ready: Promise<void>;
  /** Once it takes no new messages; with the error, if there was one. */
  readonly unusable: Promise<Error | undefined>;
}

/** What came over a stream so far. */
export interface Exchange {
  readonly stream: ClientStream;
  head: readonly string[] | undefined;
  readonly chunks: Buffer[];
  trailers: readonly string[] | undefined;
  drains: number;
  readonly ended: Promise<StreamEnd>;
}

const OPTIONS: ClientConnectionOptions = {
  windowBytes: 65_536,
  connectionWindowBytes: 1024 * 1024,
  maxHeaderBytes: 32_768,
};

export async function connectHttp2(
  port: number,
  options: Partial<ClientConnectionOptions> = {},
): Promise<TestConnection> {
  const socket = connect({ port, host: '127.0.0.1' });
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  const ready = Promise.withResolvers<void>();
  const unusable = Promise.withResolvers<Error | undefined>();
  const connection = new ClientConnection(
    socket,
    { ...OPTIONS, ...options },
    { onReady: ready.resolve, onUnusable: unusable.resolve },
  );
  return { connection, ready: ready.promise, unusable: unusable.promise };
}

/** Begins a message. @param isPaused nothing of the answer is read. */
export function begin(
  connection: ClientConnection,
  { headers = [], isPaused = false }: { readonly headers?: readonly string[]; readonly isPaused?: boolean } = {},
): Exchange {
  const { promise: ended, resolve } = Promise.withResolvers<StreamEnd>();
  const fields = [':method', 'POST', ':scheme', 'http', ':authority', 'test', ':path', '/', ...headers];
  const stream = connection.begin(fields, {
    onHead(head) {
      exchange.head = head;
    },
    onData: (chunk) => void exchange.chunks.push(Buffer.from(chunk)),
    onEnd(trailers) {
      exchange.trailers = trailers;
    },
    onDrain() {
      exchange.drains += 1;
    },
    onClosed: resolve,
  });
  const exchange: Exchange = { stream, head: undefined, chunks: [], trailers: undefined, drains: 0, ended };
  if (isPaused) stream.pause();
  return exchange;
}

export function bodyOf({ chunks }: Exchange): Buffer {
  return Buffer.concat(chunks);
}
