import { type ClientHttp2Session, type ClientHttp2Stream, constants } from 'node:http2';
import type { Clock } from '@rollcall/platform/clock.ts';
import { ping } from './ping.ts';
import { ignoreError } from './streams.ts';
import { dial, type UpstreamConnection } from './upstream-connection.ts';

export interface UpstreamOptions {
  /** A target gets another connection when each that it has carries so many calls... */
  readonly callsPerSession: number;
  /** ...up to so many connections; then they carry more. */
  readonly sessionsPerTarget: number;
  readonly connectTimeoutMs: number;
  /** A connection without calls is closed after that. */
  readonly idleMs: number;
  /** A connection takes no new calls after that, so that calls spread over pods that came later. */
  readonly maxAgeMs: number;
  /** Servers of gRPC take pings more often than every 5 minutes for an attack, by default. */
  readonly upstreamPingIntervalMs: number;
  readonly pingTimeoutMs: number;
  /** How much of an answer may be on its way before somebody reads it. */
  readonly windowBytes: number;
  readonly maxHeaderBytes: number;
}

/** A call on its way to a backend. */
export interface UpstreamCall {
  readonly stream: ClientHttp2Stream;
  /** Whether no backend can have looked at it, or it has said that it will not have: the call may be made again. */
  wasNotTaken(): boolean;
  /** Whether the connection to the backend is gone, or never was. */
  wasLost(): boolean;
  /** To be told that the stream is closed. */
  closed(): void;
}

/** Where a call goes. */
interface Place {
  readonly origin: string;
  /** Of its host; undefined: whichever takes the connection. */
  readonly address: string | undefined;
}

/** The connections to all backends. */
export interface Upstreams {
  /**
   * Begins a call, over a connection that may yet have to be made; when it cannot be, the stream closes with an error.
   *
   * @param headers names and values in turn, without scheme and authority.
   */
  open(place: Place, headers: readonly string[]): UpstreamCall;
  readonly sessions: number;
  /** Ends all connections, and with them what is still under way. */
  close(): void;
}

interface Pooled {
  readonly connection: UpstreamConnection;
  readonly madeAtMs: number;
  idleSinceMs: number;
  pingDueAtMs: number;
}

const LOOK_INTERVAL_MS = 1000;
const { NGHTTP2_REFUSED_STREAM } = constants;
/** Node's names for a stream that never was on a connection. */
const NEVER_SENT: ReadonlySet<string> = new Set(['ERR_HTTP2_GOAWAY_SESSION', 'ERR_HTTP2_INVALID_SESSION']);

/** Keeps HTTP/2 connections to backends: made when a call needs one, given up when they are idle, old, broken or told to go. */
export function createUpstreams(options: UpstreamOptions, clock: Clock): Upstreams {
  const pools = new Map<string, Set<Pooled>>();
  /** Those, too, that take no new calls and still have some. */
  const all = new Set<ClientHttp2Session>();

  function drop(key: string, pooled: Pooled): void {
    const pool = pools.get(key);
    pool?.delete(pooled);
    if (pool?.size === 0) pools.delete(key);
  }

  function add(key: string, { origin, address }: Place): Pooled {
    const onUnusable = () => drop(key, pooled);
    const connection = dial(origin, { ...options, address, onUnusable });
    const nowMs = clock.monotonicMs();
    const pingDueAtMs = nowMs + options.upstreamPingIntervalMs;
    const pooled: Pooled = { connection, madeAtMs: nowMs, idleSinceMs: nowMs, pingDueAtMs };
    const { session } = connection;
    all.add(session);
    session.on('close', () => all.delete(session));
    const pool = pools.get(key) ?? new Set();
    pools.set(key, pool.add(pooled));
    return pooled;
  }

  function choose(place: Place): Pooled {
    const key = place.address === undefined ? place.origin : `${place.origin} ${place.address}`;
    const pool = pools.get(key);
    let least: Pooled | undefined;
    for (const pooled of pool ?? []) {
      const { session, calls } = pooled.connection;
      if (session.closed || session.destroyed) continue;
      if (least === undefined || calls < least.connection.calls) least = pooled;
    }
    if (pool === undefined || least === undefined) return add(key, place);
    const { session, calls } = least.connection;
    const room = Math.min(
      options.callsPerSession,
      session.remoteSettings?.maxConcurrentStreams ?? Number.MAX_SAFE_INTEGER,
    );
    return calls < room || pool.size >= options.sessionsPerTarget ? least : add(key, place);
  }

  function look(key: string, pooled: Pooled): void {
    const { session, calls } = pooled.connection;
    if (session.connecting) return;
    const nowMs = clock.monotonicMs();
    const isIdle = calls === 0 && nowMs - pooled.idleSinceMs >= options.idleMs;
    if (isIdle || nowMs - pooled.madeAtMs >= options.maxAgeMs) {
      drop(key, pooled);
      session.close();
    } else if (nowMs >= pooled.pingDueAtMs) {
      pooled.pingDueAtMs = nowMs + options.upstreamPingIntervalMs;
      ping(session, options.pingTimeoutMs);
    }
  }

  const timer = setInterval(() => {
    for (const [key, pool] of pools) for (const pooled of pool) look(key, pooled);
  }, LOOK_INTERVAL_MS);
  timer.unref();

  return {
    open(place, headers) {
      const pooled = choose(place);
      const stream = pooled.connection.session.request(headers, { endStream: false });
      return new PooledCall(stream, pooled, clock);
    },
    get sessions() {
      return all.size;
    },
    close() {
      clearInterval(timer);
      for (const session of all) session.destroy();
    },
  };
}

class PooledCall implements UpstreamCall {
  readonly stream: ClientHttp2Stream;
  readonly #pooled: Pooled;
  readonly #clock: Clock;

  constructor(stream: ClientHttp2Stream, pooled: Pooled, clock: Clock) {
    this.stream = stream;
    this.#pooled = pooled;
    this.#clock = clock;
    pooled.connection.calls += 1;
    stream.on('error', ignoreError);
  }

  wasNotTaken(): boolean {
    const { stream } = this;
    const { connection } = this.#pooled;
    const failure: NodeJS.ErrnoException | null = stream.errored;
    return (
      stream.rstCode === NGHTTP2_REFUSED_STREAM ||
      NEVER_SENT.has(failure?.code ?? '') ||
      (connection.isLost() && !connection.wasMade()) ||
      (stream.id !== undefined && connection.isBeyondGoaway(stream.id))
    );
  }

  wasLost(): boolean {
    return this.#pooled.connection.isLost();
  }

  closed(): void {
    this.#pooled.connection.calls -= 1;
    this.#pooled.idleSinceMs = this.#clock.monotonicMs();
  }
}
