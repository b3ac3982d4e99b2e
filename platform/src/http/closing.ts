import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { LinkedList } from '../node-internals/linked-list.ts';

const CHECK_INTERVAL_MS = 50;

/**
 * Prepares a server so that closing it delivers every answer that has begun. Node treats a
 * connection as idle, and `close` destroys it, as soon as the last byte of its answer was handed to
 * the socket, with all that a slow reader has not fetched.
 *
 * @returns to be called right before `server.close()`: ends each connection once it is idle indeed,
 * and after `limitMs` whatever is left, because a client that does not read its answer must not
 * keep the process from stopping in order.
 */
export function prepareClosing(server: Server, limitMs: number): () => void {
  const sockets = new LinkedList<Socket>();
  server.on('connection', (socket: Socket) => {
    const link = sockets.add(socket);
    socket.once('close', () => link.unlink());
  });
  const closeIdleConnections = server.closeIdleConnections.bind(server);

  return () => {
    // Node calls it in `close`, too. While one connection has bytes left to send, the idle ones are
    // no hindrance.
    server.closeIdleConnections = () => {
      if (!sockets.links().some(({ value }) => value.writableLength > 0)) closeIdleConnections();
    };
    // What is busy when closing begins would else be waited for until its client ends it.
    const timer = setInterval(() => server.closeIdleConnections(), CHECK_INTERVAL_MS);
    const limit = setTimeout(() => server.closeAllConnections(), limitMs);
    server.once('close', () => {
      clearInterval(timer);
      clearTimeout(limit);
    });
  };
}
