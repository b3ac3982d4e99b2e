import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import type { LookupFunction, Socket } from 'node:net';
import type { Clock } from '@rollcall/platform/clock.ts';
import { always } from '../../upstream/discovery/addresses.ts';
import type { Endpoint, Endpoints } from '../../upstream/discovery/endpoints.ts';
import { isOfLookup } from '../../upstream/discovery/lookups.ts';

export interface BackendConnectionOptions {
  /** For the connection, and the settings that a backend speaks first. */
  readonly connectTimeoutMs: number;
  /** A connection without calls is closed after that. */
  readonly idleMs: number;
  /** A connection gets no new calls after that, so that calls spread over pods that came later. */
  readonly maxAgeMs: number;
  /**
   * A backend that answers nothing for so long, though something was sent to it, is asked whether
   * it is there...
   */
  readonly silenceMs: number;
  /** ...and one to which nothing was sent after so long. */
  readonly quietMs: number;
  readonly pingTimeoutMs: number;
  /** How much of an answer may be on its way before somebody reads it. */
  readonly windowBytes: number;
  readonly maxHeaderBytes: number;
}

interface BackendConnectionDeps {
  /** Gives up before a connection does. */
  readonly lookup: LookupFunction;
  readonly clock: Clock;
}

/** Where a call goes: an origin, and one of its addresses. */
export interface Place {
  readonly origin: string;
  readonly endpoint: Endpoint;
  readonly endpoints: Endpoints;
}

export const CHECK_INTERVAL_MS = 1000;
/** How long a backend has to close its side, too, once a session is over. */
const CLOSING_GRACE_MS = 3000;
const TCP_KEEP_ALIVE_MS = 15_000;
const CONNECTION_WINDOW_BYTES = 1024 * 1024;

/** An HTTP/2 connection to a backend, made or being made, and how many calls there are over it. */
export class BackendConnection {
  readonly session: ClientHttp2Session;
  /** Resolves to whether it was made: whether the backend has sent its settings. */
  readonly made: Promise<boolean>;
  /** Calls that wait for it count, too. */
  calls = 0;
  readonly #place: Place;
  readonly #options: BackendConnectionOptions;
  readonly #clock: Clock;
  readonly #createdAtMs: number;
  readonly #settle: (isMade: boolean) => void;
  /** Who knows that it has failed. */
  readonly #blamed = new Set<Endpoint>();
  #socket: Socket | undefined;
  #state: 'connecting' | 'made' | 'failed' = 'connecting';
  #isUnnamed = false;
  #isLost = false;
  #isRetired = false;
  #isSuspect = false;
  #lastStreamId = Number.POSITIVE_INFINITY;
  #idleSinceMs: number;
  #overAtMs: number | undefined;
  /** Counted in checks: while this process stands still nobody is silent. */
  #silentMs = 0;
  #bytesRead = 0;
  /** At the check before. */
  #bytesWritten = 0;
  /** What had been written, at the least, when something last came. */
  #heardBytes = 0;

  constructor(place: Place, options: BackendConnectionOptions, { lookup, clock }: BackendConnectionDeps) {
    const { connectTimeoutMs, windowBytes, maxHeaderBytes } = options;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.#place = place;
    this.#options = options;
    this.#clock = clock;
    this.#createdAtMs = clock.monotonicMs();
    this.#idleSinceMs = this.#createdAtMs;
    this.made = promise;
    this.#settle = resolve;
    const { address } = place.endpoint;
    const sessionOptions = {
      settings: { enablePush: false, initialWindowSize: windowBytes, maxHeaderListSize: maxHeaderBytes },
      strictSingleValueFields: false,
      lookup: address === undefined ? lookup : always(address),
    };
    this.session = connect(place.origin, sessionOptions);
    // A kernel accepts connections for a process that stands still, and a call that is sent to it
    // may be carried out once it goes on: a connection is made only when the backend has sent its
    // settings.
    const overdue = setTimeout(() => this.#fail(new Error('The backend accepted no connection')), connectTimeoutMs);
    void promise.then(() => clearTimeout(overdue));
    this.#listen();
  }

  #listen(): void {
    const { session } = this;
    session.once('connect', (_session, socket) => {
      // Given up meanwhile, of which Node does not inform a connection that is being made.
      if (session.destroyed) {
        socket.destroy();
        return;
      }
      this.#socket = socket;
      // A machine that is gone: the kernel notices without any frame that the backend might object
      // to.
      socket.setKeepAlive(true, TCP_KEEP_ALIVE_MS);
      socket.on('close', () => {
        this.#isLost = true;
      });
      session.setLocalWindowSize(Math.max(this.#options.windowBytes * 4, CONNECTION_WINDOW_BYTES));
    });
    session.once('remoteSettings', () => this.#ready());
    session.on('goaway', (_code, lastStreamId) => {
      this.#lastStreamId = lastStreamId;
    });
    session.on('error', (error) => {
      this.#isUnnamed = isOfLookup(error);
      this.#notMade();
    });
    session.on('close', () => this.#notMade());
  }

  /** Whether new calls are to go over it, once it is made. */
  acceptsCalls(): boolean {
    return this.#state !== 'failed' && !this.#isSuspect && !this.#isRetired && this.#isOpen();
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

  /** To be called every {@link CHECK_INTERVAL_MS}. */
  check(): void {
    const { session } = this;
    const { idleMs, maxAgeMs } = this.#options;
    const nowMs = this.#clock.monotonicMs();
    if (session.destroyed) {
      // Node waits for the backend, which may never close its side, or read what was sent.
      this.#overAtMs ??= nowMs;
      if (nowMs - this.#overAtMs >= CLOSING_GRACE_MS) this.#socket?.destroy();
      return;
    }
    if (this.#state !== 'made') return;
    const isIdle = this.calls === 0 && nowMs - this.#idleSinceMs >= idleMs;
    if (isIdle || nowMs - this.#createdAtMs >= maxAgeMs) this.#isRetired = true;
    // Not before the last call is over: a backend that learns that the connection will close may do
    // so at once (grpc-js does at its next ping).
    if (this.#isRetired && this.calls === 0) session.close();
    this.#checkSilence();
  }

  /** Ends it, whatever is under way. */
  destroy(): void {
    this.session.destroy();
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

  /**
   * Node reports it when the socket is closed, which may be minutes later while that is connecting.
   */
  #fail(error: Error): void {
    this.session.destroy(error);
    this.#notMade();
  }

  /**
   * A backend from which nothing comes is asked by settings (no server counts those as it counts
   * pings); new calls go elsewhere.
   */
  #checkSilence(): void {
    const { silenceMs, quietMs, pingTimeoutMs } = this.#options;
    const socket = this.#socket;
    if (socket === undefined || this.#isSuspect) return;
    if (socket.bytesRead === this.#bytesRead) this.#silentMs += CHECK_INTERVAL_MS;
    else this.#heard(socket.bytesRead, this.#bytesWritten);
    this.#bytesWritten = socket.bytesWritten;
    if (this.#silentMs < (socket.bytesWritten === this.#heardBytes ? quietMs : silenceMs)) return;
    this.#isSuspect = true;
    const overdue = setTimeout(() => this.#fail(new Error('The backend does not answer')), pingTimeoutMs).unref();
    this.session.settings({}, (error) => {
      clearTimeout(overdue);
      if (error !== null) return;
      this.#isSuspect = false;
      this.#bytesWritten = socket.bytesWritten;
      this.#heard(socket.bytesRead, socket.bytesWritten);
    });
  }

  #heard(bytesRead: number, heardBytes: number): void {
    this.#bytesRead = bytesRead;
    this.#heardBytes = heardBytes;
    this.#silentMs = 0;
  }
}
