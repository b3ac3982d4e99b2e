import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import type { LookupFunction } from 'node:net';
import { isOfLookup } from '@rollcall/platform/outbound/lookups.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { always } from '../../upstream/discovery/addresses.ts';
import type { Endpoint } from '../../upstream/discovery/endpoint.ts';
import type { Endpoints } from '../../upstream/discovery/endpoints.ts';
import { lenientFields } from './headers.ts';
import type { GrpcLimits } from './limits.ts';
import { CHECK_INTERVAL_MS, CONNECTION_WINDOW_BYTES, PeerWatch } from './peer-watch.ts';

/** What backends need. */
export interface BackendDeps {
  readonly limits: GrpcLimits;
  /** Gives up before a connection does. */
  readonly lookup: LookupFunction;
  readonly log: Logger;
}

/** Where a call goes: one of the addresses of a service. */
export interface BackendAddress {
  readonly endpoint: Endpoint;
  readonly endpoints: Endpoints;
}

/** A machine that is gone: the kernel notices without any frame that the backend might object to. */
const TCP_KEEP_ALIVE_MS = 15_000;

/** An HTTP/2 connection to a backend, made or being made, and how many calls there are over it. */
export class BackendConnection {
  readonly session: ClientHttp2Session;
  /** Resolves once the backend has sent its settings, or will not any more. */
  readonly made: Promise<void>;
  /** Calls that wait for it count, too. */
  calls = 0;
  readonly #address: BackendAddress;
  readonly #limits: GrpcLimits;
  readonly #watch: PeerWatch;
  #isMade = false;
  #isUnnamed = false;
  #isBlamed = false;
  #isLost = false;
  #ageMs = 0;
  #idleMs = 0;

  constructor(address: BackendAddress, { limits, lookup, log }: BackendDeps) {
    const { endpoint } = address;
    const { origin } = endpoint;
    const { promise, resolve } = Promise.withResolvers<void>();
    const options = {
      settings: { enablePush: false, maxHeaderListSize: limits.maxHeaderBytes },
      ...lenientFields,
      keepAlive: true,
      keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
      lookup: endpoint.address === undefined ? lookup : always(endpoint.address),
    };
    const session = connect(origin, options);
    const settle = (): void => {
      clearTimeout(overdue);
      session.off('close', settle);
      if (!this.#isMade) this.blame();
      resolve();
    };
    // A kernel accepts connections for a process that stands still, and a call that is sent to it
    // may be carried out once it goes on: a connection is made only when the backend has sent its
    // settings.
    const overdue = setTimeout(() => {
      session.destroy(new Error('The backend accepted no connection'));
      // Node reports it when the socket is closed, which may be minutes later.
      settle();
    }, limits.connectTimeoutMs);
    session.once('connect', (_session, socket) => {
      // Given up meanwhile, of which Node does not inform a connection that is being made.
      if (session.destroyed) socket.destroy();
      else session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
      socket.once('close', () => {
        this.#isLost = true;
      });
    });
    session.once('remoteSettings', () => {
      this.#isMade = !session.destroyed;
      // Calls of which the answer begins when there is news would keep each other waiting until
      // then.
      if (endpoint.breaker.state() !== 'closed') endpoint.breaker.succeeded();
      settle();
    });
    session.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code?.startsWith('ERR_HTTP2_') === true) log.warn({ err: error, origin }, 'gRPC backend breaks HTTP/2');
      this.#isUnnamed = isOfLookup(error);
    });
    session.once('close', settle);
    this.session = session;
    this.made = promise;
    this.#address = address;
    this.#limits = limits;
    this.#watch = new PeerWatch(limits);
  }

  get endpoint(): Endpoint {
    return this.#address.endpoint;
  }

  /** Whether new calls are to go over it, once it is made. */
  acceptsCalls(): boolean {
    return this.#ageMs < this.#limits.maxAgeMs && !this.#watch.isSuspect && this.#isOpen();
  }

  /** Whether a call can be begun now. */
  isReady(): boolean {
    return this.#isMade && this.#isOpen();
  }

  #isOpen(): boolean {
    return !this.session.closed && !this.session.destroyed;
  }

  /** Whether it carries as many calls as it should, or as its backend accepts. */
  isFull(): boolean {
    const { maxConcurrentStreams = Number.POSITIVE_INFINITY } = this.#isMade ? this.session.remoteSettings : {};
    return this.calls >= Math.min(this.#limits.callsPerSession, maxConcurrentStreams);
  }

  /** Whether a call ended because the connection did, or was never made. */
  isLost({ errored }: ClientHttp2Stream): boolean {
    const failure: NodeJS.ErrnoException | null = errored;
    return this.#isLost || (failure !== null && failure.code !== 'ERR_HTTP2_STREAM_ERROR');
  }

  /** The backend is there. */
  answered(): void {
    this.#address.endpoint.breaker.succeeded();
  }

  /** A call has ended that says nothing of the backend. */
  abandoned(): void {
    this.#address.endpoint.breaker.abandoned();
  }

  /**
   * Counts it against the backend that the connection has failed: once, however many calls are lost
   * with it, and not where only the name could not be looked up.
   */
  blame(): void {
    if (this.#isUnnamed || this.#isBlamed) return this.abandoned();
    this.#isBlamed = true;
    this.#address.endpoint.breaker.failed();
    this.#address.endpoints.suspect(this.#address.endpoint);
  }

  /** To be called every {@link CHECK_INTERVAL_MS}. */
  check(): void {
    if (!this.#isMade || this.session.destroyed) return;
    this.#ageMs += CHECK_INTERVAL_MS;
    this.#idleMs = this.calls > 0 ? 0 : this.#idleMs + CHECK_INTERVAL_MS;
    this.#watch.check(this.session, this.calls > 0);
    // Not before the last call is over: a backend that learns that the connection will close may do
    // so at once (grpc-js does at its next ping).
    const isDue = this.#idleMs >= this.#limits.idleMs || this.#ageMs >= this.#limits.maxAgeMs;
    if (this.calls === 0 && isDue) this.session.destroy();
  }
}
