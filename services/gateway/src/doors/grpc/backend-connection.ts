import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import type { LookupFunction } from 'node:net';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { always } from '../../upstream/discovery/addresses.ts';
import type { Endpoint, Endpoints } from '../../upstream/discovery/endpoints.ts';
import { isOfLookup } from '../../upstream/discovery/lookups.ts';
import type { GrpcLimits } from './limits.ts';
import { CONNECTION_WINDOW_BYTES, PeerWatch } from './peer-watch.ts';

/** What backends need. */
export interface BackendDeps {
  readonly limits: GrpcLimits;
  /** Gives up before a connection does. */
  readonly lookup: LookupFunction;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Where a call goes: an origin, and one of its addresses. */
export interface Place {
  readonly origin: string;
  readonly endpoint: Endpoint;
  readonly endpoints: Endpoints;
}

const TCP_KEEP_ALIVE_MS = 15_000;

/** An HTTP/2 connection to a backend, made or being made, and how many calls there are over it. */
export class BackendConnection {
  readonly session: ClientHttp2Session;
  /** Resolves to whether it was made: whether the backend has sent its settings. */
  readonly made: Promise<boolean>;
  /** Calls that wait for it count, too. */
  calls = 0;
  readonly #place: Place;
  readonly #limits: GrpcLimits;
  readonly #clock: Clock;
  readonly #createdAtMs: number;
  /** Who knows that it has failed. */
  readonly #blamed = new Set<Endpoint>();
  #settle: (isMade: boolean) => void = () => undefined;
  #watch: PeerWatch | undefined;
  #state: 'connecting' | 'made' | 'failed' = 'connecting';
  #isUnnamed = false;
  #isLost = false;
  #isRetired = false;
  #lastStreamId = Number.POSITIVE_INFINITY;
  #idleSinceMs: number;

  constructor(place: Place, { limits, lookup, clock, log }: BackendDeps) {
    const { connectTimeoutMs, windowBytes, maxHeaderBytes } = limits;
    this.#place = place;
    this.#limits = limits;
    this.#clock = clock;
    this.#createdAtMs = clock.monotonicMs();
    this.#idleSinceMs = this.#createdAtMs;
    const { address } = place.endpoint;
    const sessionOptions = {
      settings: { enablePush: false, initialWindowSize: windowBytes, maxHeaderListSize: maxHeaderBytes },
      strictSingleValueFields: false,
      lookup: address === undefined ? lookup : always(address),
    };
    this.session = connect(place.origin, sessionOptions);
    this.made = new Promise((resolve) => {
      this.#settle = resolve;
    });
    // A kernel accepts connections for a process that stands still, and a call that is sent to it
    // may be carried out once it goes on: a connection is made only when the backend has sent its
    // settings.
    const overdue = setTimeout(() => {
      this.session.destroy(new Error('The backend accepted no connection'));
      // Node reports it when the socket is closed, which may be minutes later.
      this.#notMade();
    }, connectTimeoutMs);
    void this.made.then(() => clearTimeout(overdue));
    this.#listen(log);
  }

  #listen(log: Logger): void {
    const { session } = this;
    session.once('connect', (_session, socket) => {
      // Given up meanwhile, of which Node does not inform a connection that is being made.
      if (session.destroyed) {
        socket.destroy();
        return;
      }
      this.#watch = new PeerWatch(session, socket, this.#limits);
      // A machine that is gone: the kernel notices without any frame that the backend might object
      // to.
      socket.setKeepAlive(true, TCP_KEEP_ALIVE_MS);
      socket.on('close', () => {
        this.#isLost = true;
      });
      session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    });
    session.once('remoteSettings', () => this.#ready());
    session.on('goaway', (_code, lastStreamId) => {
      this.#lastStreamId = lastStreamId;
    });
    session.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code?.startsWith('ERR_HTTP2_') === true)
        log.warn({ err: error, origin: this.#place.origin }, 'gRPC backend breaks HTTP/2');
      this.#isUnnamed = isOfLookup(error);
      this.#notMade();
    });
    session.on('close', () => this.#notMade());
  }

  /** Whether new calls are to go over it, once it is made. */
  acceptsCalls(): boolean {
    return this.#state !== 'failed' && !this.#isRetired && this.#watch?.isSuspect !== true && this.#isOpen();
  }

  /** Whether a call can be begun now. */
  isReady(): boolean {
    return this.#state === 'made' && this.#isOpen();
  }

  /** The backend accepts no more at once. */
  get room(): number {
    if (this.#state !== 'made') return Number.POSITIVE_INFINITY;
    return this.session.remoteSettings.maxConcurrentStreams ?? Number.POSITIVE_INFINITY;
  }

  /** To be called when a call is over. */
  closed(): void {
    this.calls -= 1;
    if (this.calls === 0) this.#idleSinceMs = this.#clock.monotonicMs();
  }

  /** Whether a call ended because the connection did, or was never made. */
  isLost({ errored }: ClientHttp2Stream): boolean {
    const failure: NodeJS.ErrnoException | null = errored;
    return this.#isLost || (failure !== null && failure.code !== 'ERR_HTTP2_STREAM_ERROR');
  }

  /** Whether the backend has said that it will not have processed a stream with this id. */
  isBeyondGoaway(streamId: number): boolean {
    return streamId > this.#lastStreamId;
  }

  /**
   * Counts it against who answers there that the connection has failed: once, however many calls
   * are lost with it, and not where only the name could not be looked up.
   */
  blame({ endpoint, endpoints }: Place): void {
    if (this.#isUnnamed || this.#blamed.has(endpoint)) {
      endpoint.breaker.abandoned();
      return;
    }
    this.#blamed.add(endpoint);
    endpoint.breaker.failed();
    endpoints.suspect();
  }

  /** To be called as often as {@link PeerWatch.check}. */
  check(): void {
    this.#watch?.check(this.calls > 0);
    if (this.#state !== 'made' || this.session.destroyed) return;
    const { idleMs, maxAgeMs } = this.#limits;
    const nowMs = this.#clock.monotonicMs();
    const isIdle = this.calls === 0 && nowMs - this.#idleSinceMs >= idleMs;
    if (isIdle || nowMs - this.#createdAtMs >= maxAgeMs) this.#isRetired = true;
    // Not before the last call is over: a backend that learns that the connection will close may do
    // so at once (grpc-js does at its next ping).
    if (this.#isRetired && this.calls === 0) this.session.close();
  }

  #isOpen(): boolean {
    return !this.session.closed && !this.session.destroyed;
  }

  #ready(): void {
    if (this.#state !== 'connecting') return;
    this.#state = 'made';
    // Calls of which the answer begins when there is news would keep each other waiting until then.
    const { breaker } = this.#place.endpoint;
    if (breaker.state() !== 'closed') breaker.succeeded();
    this.#settle(true);
  }

  #notMade(): void {
    if (this.#state !== 'connecting') return;
    this.#state = 'failed';
    if (this.#blamed.size === 0) this.blame(this.#place);
    this.#settle(false);
  }
}
