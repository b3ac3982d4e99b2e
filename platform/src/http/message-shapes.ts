import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';

/** V8 lays a class out anew for its first seven objects. */
const OBJECTS = 16;

/**
 * Lets V8 settle on the layout of requests and responses while none of their first objects can be
 * collected.
 *
 * V8 gives a class as many properties within its objects as the first few of them used, and forgets
 * objects that a garbage collection frees. A server that reads much before its first requests come
 * then has requests and responses with too few; for the rest they become dictionaries, for good,
 * and every request costs twice the CPU time.
 */
export function settleMessageShapes(): void {
  const socket = new Socket();
  const kept: unknown[] = [];
  for (let made = 0; made < OBJECTS; made += 1) {
    const request = new IncomingMessage(socket);
    kept.push(request, new ServerResponse(request));
  }
  socket.destroy();
}
