import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { isUnsent } from '@rollcall/platform/outbound/exchange.ts';
import { createWebSocketStream, WebSocket } from 'ws';
import { isObject, type JsonObject, SourceErrors, type SubgraphCall } from '../execution/types.ts';
import { unavailable } from './call-errors.ts';
import { NotSpokenError, type Source, type SourceOptions } from './source.ts';

const PROTOCOL = 'graphql-transport-ws';
/** Each connection has one subscription: who calls is said for the connection. */
const ID = '1';
/** For the handshake, and then until the service accepts the connection. */
const OPENING_MS = 10_000;
/** A service that answers no ping within it is gone. */
const PING_MS = 20_000;
const TIMES = { handshakeTimeout: OPENING_MS, closeTimeout: 1000 } as const;

/**
 * Opens a subscription of a subgraph by graphql-transport-ws (the protocol of graphql-ws).
 *
 * @throws NotSpokenError where the service does not speak it, and what connecting throws. The reason of the
 * signal, once it is aborted.
 */
export async function openByWebSocket(call: SubgraphCall, options: SourceOptions): Promise<Source> {
  const { url, headers, lookup, limitBytes, signal } = options;
  // An aborted one tells nobody any more.
  signal.throwIfAborted();
  const socket = new WebSocket(url.href.replace(/^http/, 'ws'), PROTOCOL, {
    ...TIMES,
    headers,
    lookup,
    maxPayload: limitBytes,
    perMessageDeflate: false,
  });
  // It stops reading from the network while nobody takes what it has read.
  const stream = createWebSocketStream(socket, { readableObjectMode: true, readableHighWaterMark: 1 });
  stream.on('error', () => undefined);
  const leave = () => {
    socket.close(1000);
    stream.destroy();
  };
  signal.addEventListener('abort', leave, { once: true });
  socket.once('close', () => signal.removeEventListener('abort', leave));
  try {
    await once(socket, 'open');
  } catch (error) {
    signal.throwIfAborted();
    if (isUnsent(error)) throw error;
    throw new NotSpokenError('The service has no WebSocket for GraphQL', error);
  }
  return answersTo(call, { socket, stream, headers });
}

interface Opened {
  readonly socket: WebSocket;
  /** Of its messages. */
  readonly stream: Duplex;
  readonly headers: Readonly<Record<string, string>>;
}

async function* answersTo({ query, variables, operationName }: SubgraphCall, opened: Opened): Source {
  const { socket, stream, headers } = opened;
  const send = (message: object) => socket.send(JSON.stringify(message));
  const opening = setTimeout(() => socket.terminate(), OPENING_MS);
  const pings = pingRegularly(socket);
  try {
    // Many servers look for who calls here and not among the headers of the upgrade.
    send({ type: 'connection_init', payload: headers });
    for await (const text of stream) {
      const message = messageIn(text);
      if (message['type'] === 'connection_ack') {
        clearTimeout(opening);
        send({ id: ID, type: 'subscribe', payload: { query, variables, operationName } });
      } else if (message['type'] === 'ping') send({ type: 'pong' });
      else if (message['type'] === 'next' && isObject(message['payload'])) yield message['payload'];
      else if (message['type'] === 'error') throw new SourceErrors(message['payload']);
      else if (message['type'] === 'complete') return;
      else if (message['type'] !== 'pong') throw unavailable('The service does not speak as GraphQL');
    }
  } finally {
    clearTimeout(opening);
    clearInterval(pings);
    socket.close(1000);
  }
  throw unavailable('The service ended the subscription');
}

/** Empty where it is none. */
function messageIn(text: unknown): JsonObject {
  try {
    const message: unknown = JSON.parse(String(text));
    return isObject(message) ? message : {};
  } catch {
    return {};
  }
}

/** What is not read on purpose is no silence of the peer. */
function pingRegularly(socket: WebSocket): NodeJS.Timeout {
  let isAnswered = true;
  socket.on('pong', () => {
    isAnswered = true;
  });
  return setInterval(() => {
    if (socket.isPaused) return;
    if (!isAnswered) return socket.terminate();
    isAnswered = false;
    socket.ping();
  }, PING_MS);
}
