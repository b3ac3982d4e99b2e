import { constants, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { Clock } from '@rollcall/platform/clock.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { ping } from './ping.ts';
import { release } from './streams.ts';

export interface ConnectionOptions {
  /** Who has connected and not begun to speak HTTP/2 by then is disconnected. */
  readonly handshakeTimeoutMs: number;
  /** A connection without calls is closed after that. */
  readonly idleMs: number;
  readonly pingIntervalMs: number;
  readonly pingTimeoutMs: number;
  readonly windowBytes: number;
}

/** The connections of callers. */
export interface Connections {
  readonly size: number;
  /** Tells all callers to go elsewhere with new calls; resolves when all connections are gone, within the time. */
  drain(limitMs: number): Promise<boolean>;
  /** Ends whatever is left. */
  destroy(): void;
}

interface Known {
  readonly openedAtMs: number;
  /** Whether the peer has sent its settings. */
  settled: boolean;
  calls: number;
  idleSinceMs: number;
  pingDueAtMs: number;
}

const LOOK_INTERVAL_MS = 1000;
/** A caller that is slow to answer may still have begun calls that it thinks were taken. */
const GOAWAY_ROUND_TRIP_MS = 1000;
const ANY_STREAM = 2 ** 31 - 1;

/**
 * Called for every call that comes: its head as names and values in turn.
 *
 * @returns called once its stream is closed.
 */
type OnCall = (stream: ServerHttp2Stream, raw: readonly string[]) => () => void;

interface FollowDeps {
  readonly options: ConnectionOptions;
  readonly clock: Clock;
  readonly onCall: OnCall;
}

/** Follows the sessions of a server: ends those that say nothing, are idle or gone, and all of them at the end. */
export function followConnections(server: Http2Server, { options, clock, onCall }: FollowDeps): Connections {
  const sessions = new Map<ServerHttp2Session, Known>();
  const sockets = new Set<Socket>();
  let onEmpty: (() => void) | undefined;
  let draining = false;

  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('session', (session) => {
    const nowMs = clock.monotonicMs();
    const known: Known = {
      openedAtMs: nowMs,
      settled: false,
      calls: 0,
      idleSinceMs: nowMs,
      pingDueAtMs: nowMs + options.pingIntervalMs,
    };
    sessions.set(session, known);
    session.setLocalWindowSize(Math.max(options.windowBytes * 4, CONNECTION_WINDOW_BYTES));
    session.once('remoteSettings', () => {
      known.settled = true;
    });
    session.on('stream', (stream, ...rest) => {
      known.calls += 1;
      const onClose = onCall(stream, rest[2]);
      stream.on('close', () => {
        known.calls -= 1;
        known.idleSinceMs = clock.monotonicMs();
        onClose();
        release(stream);
      });
    });
    if (draining) session.close();
    // Whatever it is ends the session, and the calls on it hear of that.
    session.on('error', () => undefined);
    session.once('close', () => {
      sessions.delete(session);
      if (sessions.size === 0) onEmpty?.();
    });
  });

  function look(): void {
    const nowMs = clock.monotonicMs();
    for (const [session, known] of sessions) {
      if (!known.settled) {
        if (nowMs - known.openedAtMs >= options.handshakeTimeoutMs) session.destroy();
      } else if (known.calls === 0 && nowMs - known.idleSinceMs >= options.idleMs) {
        session.close();
      } else if (nowMs >= known.pingDueAtMs) {
        known.pingDueAtMs = nowMs + options.pingIntervalMs;
        ping(session, options.pingTimeoutMs);
      }
    }
  }

  const timer = setInterval(look, LOOK_INTERVAL_MS);
  timer.unref();

  return {
    get size() {
      return sessions.size;
    },
    async drain(limitMs) {
      draining = true;
      const empty = new Promise<true>((resolve) => {
        onEmpty = () => resolve(true);
      });
      // Calls that are already on their way are taken (RFC 9113, section 6.8).
      for (const session of sessions.keys()) {
        if (!session.destroyed) session.goaway(constants.NGHTTP2_NO_ERROR, ANY_STREAM);
      }
      await Promise.all(sessions.keys().map(roundTrip));
      for (const session of sessions.keys()) session.close();
      if (sessions.size === 0) return true;
      return Promise.race([empty, sleep(limitMs).then(() => false)]);
    },
    destroy() {
      clearInterval(timer);
      for (const session of sessions.keys()) session.destroy();
      // A session that was closed before waits for its peer to close, too.
      for (const socket of sockets) socket.destroy();
    },
  };
}

const CONNECTION_WINDOW_BYTES = 1024 * 1024;

async function roundTrip(session: ServerHttp2Session): Promise<void> {
  if (session.destroyed) return;
  const answered = new Promise<void>((resolve) => {
    session.ping(() => resolve());
  });
  await Promise.race([answered, sleep(GOAWAY_ROUND_TRIP_MS)]);
}
