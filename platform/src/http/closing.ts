import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LinkedList } from '../node-internals/linked-list.ts';

const CHECK_INTERVAL_MS = 250;
const TURNS_UNTIL_READ = 3;
/** More connections do not wait: it is what Node asks the kernel to keep. */
const MOST_WAITING = 511;

/**
 * Prepares a server so that closing it delivers every answer that has begun. Node treats a
 * connection as idle, and `close` destroys it, as soon as the last byte of its answer was handed to
 * the socket, with all that a slow reader has not fetched.
 *
 * @returns to be awaited right before `server.close()`: ends each connection once it is idle
 * indeed, and after `limitMs` whatever is left, because a client that does not read its answer must
 * not keep the process from stopping in order.
 */
export function prepareClosing(server: Server, limitMs: number): () => Promise<void> {
  const sockets = new LinkedList<Socket>();
  server.on('connection', (socket: Socket) => {
    const link = sockets.add(socket);
    socket.once('close', () => link.unlink());
  });
  const closeIdleConnections = server.closeIdleConnections.bind(server);
  const list = (): Socket[] => sockets.links().map(({ value }) => value);
  const closeIdle = async (): Promise<void> => {
    await untilRead(server);
    // While one connection has bytes left to send, the idle ones are no hindrance.
    if (!list().some(({ writableLength }) => writableLength > 0)) closeIdleConnections();
  };
  const countBytes = (): number =>
    list().reduce((sum, { bytesRead, bytesWritten }) => sum + bytesRead + bytesWritten, 0);

  return async () => {
    await untilRead(server);
    // Node calls it in `close`, too.
    server.closeIdleConnections = () => void closeIdle();
    let bytes = countBytes();
    // What is busy when closing begins would else be waited for until its client ends it. Its
    // answer may have said that the connection is kept: who asks again at once is heard.
    const timer = setInterval(() => {
      const before = bytes;
      bytes = countBytes();
      if (bytes === before) server.closeIdleConnections();
    }, CHECK_INTERVAL_MS);
    const limit = setTimeout(() => server.closeAllConnections(), limitMs);
    server.once('close', () => {
      clearInterval(timer);
      clearTimeout(limit);
    });
  };
}

/**
 * What has arrived while the process had no time is read first: closed unread, its connection is
 * reset, and nobody may send a POST again. One connection is accepted in a turn of the event loop,
 * and its request read in the next.
 */
async function untilRead(server: Server): Promise<void> {
  let turnsLeft = TURNS_UNTIL_READ;
  const onConnection = () => {
    turnsLeft = TURNS_UNTIL_READ;
  };
  server.on('connection', onConnection);
  for (let turn = 0; turnsLeft > 0 && turn < MOST_WAITING; turn += 1) {
    turnsLeft -= 1;
    await nextTurn();
  }
  server.off('connection', onConnection);
}
