import type { LookupFunction } from 'node:net';
import type { Clock } from '@rollcall/platform/clock.ts';
import { type Link, LinkedList } from '@rollcall/platform/linked-list.ts';
import type { Logger } from '@rollcall/platform/log.ts';
import type { ClientConnection } from '../../http2/client-connection.ts';
import type { ClientStream, StreamHandler } from '../../http2/client-stream.ts';
import { ConnectionError } from '../../http2/protocol.ts';
import type { Endpoint, Endpoints } from '../../upstream/discovery/endpoints.ts';
import { dial, type UpstreamConnection } from './upstream-connection.ts';

export interface PooledOptions {
  /** For the connection, and the settings that a backend speaks first. */
  readonly connectTimeoutMs: number;
  /** Gives up before a connection does. */
  readonly lookup: LookupFunction;
  /** A connection without calls is closed after that. */
  readonly idleMs: number;
  /** A connection takes no new calls after that, so that calls spread over pods that came later. */
  readonly maxAgeMs: number;
  /** Servers of gRPC take pings more often than every 5 minutes for an attack, by default. */
  readonly upstreamPingIntervalMs: number;
  /** A backend that answers nothing for so long, though something was sent to it, is asked whether it is there. */
  readonly silenceMs: number;
  readonly pingTimeoutMs: number;
  /** How much of an answer may be on its way before somebody reads it. */
  readonly windowBytes: number;
  readonly maxHeaderBytes: number;
}

/** Where a call goes: an origin, and one of its addresses. */
export interface Place {
  readonly origin: string;
  readonly endpoint: Endpoint;
  readonly endpoints: Endpoints;
}

/** Told whether a connection was made. */
export type Waiter = (isMade: boolean) => void;

interface PooledDeps {
  readonly options: PooledOptions;
  readonly clock: Clock;
  readonly log: Logger;
  /** It takes no new calls any more. It may be told more than once. */
  readonly onUnusable: (pooled: PooledConnection) => void;
  readonly onGone: (pooled: PooledConnection) => void;
}

export const LOOK_INTERVAL_MS = 1000;
/** How long a backend has to close its side, too, once a session is over. */
const CLOSING_GRACE_MS = 3000;

/** A connection to a backend, made or being made, and the calls over it. */
export class PooledConnection {
  readonly place: Place;
  /** What the head of each call says of the origin. */
  readonly originHeaders: readonly string[];
  /** Those that wait for it, too. */
  calls = 0;
  readonly #deps: PooledDeps;
  readonly #connection: UpstreamConnection;
  readonly #waiting = new LinkedList<Waiter>();
  readonly #madeAtMs: number;
  #idleSinceMs: number;
  #pingDueAtMs: number;
  #overAtMs: number | undefined;
  #isMade = false;
  #isRetired = false;
  /** Who was told that it has failed. */
  #blamed: Set<Endpoint> | undefined;
  #isSuspect = false;
  /** Counted in looks: while this process stands still nobody is silent. */
  #silentMs = 0;
  #readBytes = 0;
  #writtenBytes = 0;
  /** What had been written, at the least, when something last came. */
  #heardBytes = 0;
  /** Whether a call without an answer has been given up since then. */
  #wasGivenUp = false;

  constructor(place: Place, deps: PooledDeps) {
    const { options, clock, onGone } = deps;
    this.place = place;
    this.#deps = deps;
    this.#madeAtMs = clock.monotonicMs();
    this.#idleSinceMs = this.#madeAtMs;
    this.#pingDueAtMs = this.#madeAtMs + options.upstreamPingIntervalMs;
    const { protocol, host } = new URL(place.origin);
    this.originHeaders = [':scheme', protocol.slice(0, -1), ':authority', host];
    this.#connection = dial(place.origin, {
      ...options,
      address: place.endpoint.address,
      onReady: () => this.#ready(),
      onUnusable: (error) => this.#unusable(error),
    });
    this.#connection.socket.on('close', () => onGone(this));
  }

  /** Whether new calls are to go over it. */
  takesCalls(): boolean {
    return !this.#isSuspect && !this.#connection.socket.destroyed && this.#connection.http2?.isOpen !== false;
  }

  /** Whether a call can be begun now. */
  isReady(): boolean {
    return this.#isMade && this.#connection.http2?.isOpen === true;
  }

  /** More at once the backend does not take. */
  get room(): number {
    return this.#connection.http2?.maxStreams ?? Number.POSITIVE_INFINITY;
  }

  /** Once it is made, or cannot be. @returns to be unlinked by who waits no longer. */
  wait(waiter: Waiter): Link<Waiter> {
    return this.#waiting.add(waiter);
  }

  /** Begins a call, where that can be done now. @param headers names and values in turn. */
  begin(headers: readonly string[], handler: StreamHandler): ClientStream {
    const { http2 } = this.#connection;
    if (http2 === undefined) throw new Error('There is no connection');
    return http2.begin(headers, handler);
  }

  /** To be told that a call is over, and whether there was an answer. */
  closed(isAnswered: boolean): void {
    this.calls -= 1;
    if (!isAnswered) this.#wasGivenUp = true;
    if (this.calls === 0) this.#idleSinceMs = this.#deps.clock.monotonicMs();
  }

  /**
   * Counts it against who answers there that the connection has failed: once, however many calls are lost with it, and not where only
   * the name could not be looked up.
   */
  blame({ endpoint, endpoints }: Place): void {
    const blamed = (this.#blamed ??= new Set());
    if (this.#connection.isUnnamed() || blamed.has(endpoint)) {
      endpoint.breaker.abandoned();
      return;
    }
    blamed.add(endpoint);
    endpoint.breaker.failed();
    endpoints.suspect();
  }

  /** To be called every {@link LOOK_INTERVAL_MS}. */
  look(): void {
    const { http2, socket } = this.#connection;
    const { options, clock } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (http2?.isDestroyed === true) {
      // A backend may never take what was sent last.
      this.#overAtMs ??= nowMs;
      if (nowMs - this.#overAtMs >= CLOSING_GRACE_MS) socket.destroy();
      return;
    }
    if (!this.#isMade || http2 === undefined) return;
    const isIdle = this.calls === 0 && nowMs - this.#idleSinceMs >= options.idleMs;
    if (isIdle || nowMs - this.#madeAtMs >= options.maxAgeMs) this.#retire();
    if (nowMs >= this.#pingDueAtMs) {
      this.#pingDueAtMs = nowMs + options.upstreamPingIntervalMs;
      this.#probe((onAnswer) => http2.ping(onAnswer));
    }
    this.#listen(http2);
  }

  /** Ends it, whatever is under way. */
  close(): void {
    if (this.#connection.http2 === undefined) this.#connection.destroy();
    else this.#connection.http2.close();
  }

  #ready(): void {
    this.#isMade = true;
    // Calls of which the answer begins when there is news would keep each other waiting until then.
    const { breaker } = this.place.endpoint;
    if (breaker.state() !== 'closed') breaker.succeeded();
    this.#tellWaiting();
  }

  #unusable(error: Error | undefined): void {
    this.#deps.onUnusable(this);
    if (error instanceof ConnectionError)
      this.#deps.log.warn({ err: error, origin: this.place.origin }, 'gRPC backend breaks HTTP/2');
    if (this.#isMade) return;
    if (this.#blamed === undefined) this.blame(this.place);
    this.#tellWaiting();
  }

  #tellWaiting(): void {
    for (const link of this.#waiting.links()) {
      link.unlink();
      link.value(this.isReady());
    }
  }

  /**
   * Takes no new calls; is closed once the last one is over. Not before: a backend that is told that the connection will close may
   * do so at once (grpc-js drops it at its next ping).
   */
  #retire(): void {
    if (!this.#isRetired) this.#deps.onUnusable(this);
    this.#isRetired = true;
    if (this.calls === 0) this.#connection.http2?.close();
  }

  /** A backend from which nothing comes is asked, once for what it was sent; meanwhile new calls go elsewhere. */
  #listen(http2: ClientConnection): void {
    const { options } = this.#deps;
    const { socket } = this.#connection;
    const { bytesRead, bytesWritten } = socket;
    if (bytesRead !== this.#readBytes) this.#heard(bytesRead, this.#writtenBytes);
    else if (this.#writtenBytes !== this.#heardBytes && (this.calls > 0 || this.#wasGivenUp)) {
      this.#silentMs += LOOK_INTERVAL_MS;
    }
    this.#writtenBytes = bytesWritten;
    if (this.#silentMs < options.silenceMs || this.#isSuspect) return;
    this.#isSuspect = true;
    // No server of gRPC counts settings as it counts pings.
    this.#probe(
      (onAnswer) => http2.sendSettings(onAnswer),
      () => {
        this.#isSuspect = false;
        this.#writtenBytes = socket.bytesWritten;
        this.#heard(socket.bytesRead, socket.bytesWritten);
      },
    );
  }

  /** Asks whether the backend is there, and ends the connection where no answer comes in time. */
  #probe(ask: (onAnswer: () => void) => void, onAnswer?: () => void): void {
    const overdue = setTimeout(() => this.#connection.destroy(), this.#deps.options.pingTimeoutMs).unref();
    ask(() => {
      clearTimeout(overdue);
      onAnswer?.();
    });
  }

  #heard(readBytes: number, writtenBytes: number): void {
    this.#readBytes = readBytes;
    this.#heardBytes = writtenBytes;
    this.#silentMs = 0;
    this.#wasGivenUp = false;
  }
}
