import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { App } from '@rollcall/platform/http/server.ts';
import { LinkedList } from '@rollcall/platform/node-internals/linked-list.ts';
import { Counter, type Registry } from 'prom-client';

export interface SlowCallersPolicy {
  /** How often open requests are checked. */
  readonly checkIntervalMs: number;
  /**
   * What a caller sends of a body, on average: less is a way to hold connections and the services'
   * with next to no effort.
   */
  readonly leastBytesPerSecond: number;
  /** How long nothing of a body may come, where it was in time before. */
  readonly sendingGraceMs: number;
  /** How long a caller may read nothing of an answer that waits for it. */
  readonly readingGraceMs: number;
}

type Fault = 'sending' | 'reading';

/**
 * Ends the requests of callers who send a body, or read an answer, so slowly that it can only be
 * meant to keep connections busy; headers are the business of `headersTimeout`. Time in which the
 * gateway did not read, because the service did not, is not the caller's. Time is counted in
 * checks: while this process stands still nobody is slow.
 */
export function endSlowCallers(app: App, metrics: Registry, policy: SlowCallersPolicy): void {
  const open = new LinkedList<Exchange>();
  const ended = new Counter({
    name: 'rollcall_gateway_slow_callers_total',
    help: 'Requests ended because the caller sent its body, or read the answer, too slowly',
    labelNames: ['fault'],
    registers: [metrics],
  });
  // Fastify calls no hook for a path that cannot be decoded.
  app.server.on('request', (request, response) => {
    const exchange = new Exchange(request, response);
    const link = open.add(exchange);
    response.once('close', () => {
      if (exchange.isOver()) link.unlink();
    });
  });
  const timer = setInterval(() => {
    for (const link of open.links()) {
      const exchange = link.value;
      const fault = exchange.check(policy);
      if (fault !== undefined) {
        ended.inc({ fault });
        exchange.end(app);
      }
      if (fault !== undefined || exchange.isOver()) link.unlink();
    }
  }, policy.checkIntervalMs).unref();
  app.addHook('onClose', (_app, done) => {
    clearInterval(timer);
    done();
  });
}

/** A request and its answer, and what moved since the last check. */
class Exchange {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #socket: Socket;
  #received: number;
  /** Bytes that the caller is behind what it should have sent. */
  #lacking = 0;
  #sentBytes = 0;
  #stuckMs = 0;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#request = request;
    this.#response = response;
    this.#socket = request.socket;
    this.#received = request.socket.bytesRead;
  }

  check(policy: SlowCallersPolicy): Fault | undefined {
    if (this.#sendsTooSlowly(policy)) return 'sending';
    return this.#readsTooSlowly(policy) ? 'reading' : undefined;
  }

  #sendsTooSlowly({ checkIntervalMs, leastBytesPerSecond, sendingGraceMs }: SlowCallersPolicy): boolean {
    // What waits to be read here has been sent in time.
    if (this.#request.complete || this.#request.readableLength > 0) return false;
    const { bytesRead } = this.#socket;
    const due = (leastBytesPerSecond * checkIntervalMs) / 1000;
    this.#lacking = Math.max(0, this.#lacking + due - (bytesRead - this.#received));
    this.#received = bytesRead;
    return this.#lacking > (leastBytesPerSecond * sendingGraceMs) / 1000;
  }

  #readsTooSlowly({ checkIntervalMs, readingGraceMs }: SlowCallersPolicy): boolean {
    const { bytesWritten, writableLength } = this.#socket;
    const sentBytes = bytesWritten - writableLength;
    const isStuck = writableLength > 0 && sentBytes === this.#sentBytes;
    this.#sentBytes = sentBytes;
    this.#stuckMs = isStuck ? this.#stuckMs + checkIntervalMs : 0;
    return this.#stuckMs > readingGraceMs;
  }

  /** A body may still come after its answer, whose beginning was enough for it. */
  isOver(): boolean {
    return this.#response.closed && (this.#request.complete || this.#socket.destroyed);
  }

  end(app: App): void {
    // Node's own way to report a request that did not come in full. The server knows whether an
    // answer can be given to it.
    const timeout = Object.assign(new Error('The body is sent too slowly'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
    if (!this.#response.headersSent) app.server.emit('clientError', timeout, this.#socket);
    // Or the kernel would keep what it has of the answer for minutes.
    else this.#socket.resetAndDestroy();
  }
}
