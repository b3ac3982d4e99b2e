import type { Http2Server, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { Clock } from '@rollcall/platform/clock.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import type { GrpcLimits } from './limits.ts';
import { CHECK_INTERVAL_MS, CONNECTION_WINDOW_BYTES, PeerWatch } from './peer-watch.ts';

/** The connections of callers. */
export interface Connections {
  readonly size: number;
  /** Sends GOAWAY to all callers; resolves when all connections are gone, within the time. */
  drain(limitMs: number): Promise<boolean>;
  /** Ends whatever is left. */
  destroy(): void;
}

interface Known {
  readonly socket: Socket;
  readonly watch: PeerWatch;
  readonly openedAtMs: number;
  /** Whether the peer has sent its settings. */
  settled: boolean;
  calls: number;
  idleSinceMs: number;
}

/** Until their sockets are closed, too. */
type Sessions = Map<ServerHttp2Session, Known>;

/** A caller that is slow to answer may have begun calls that it believes are accepted. */
const GOAWAY_ROUND_TRIP_MS = 1000;
/** GOAWAY, NO_ERROR, with the highest number that a stream may have. */
const GOAWAY_NOTICE = Buffer.from([0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]);

interface FollowDeps {
  readonly limits: GrpcLimits;
  readonly clock: Clock;
  /**
   * Called for every call that comes: its head as names and values in turn.
   *
   * @returns called once its stream is closed.
   */
  readonly onCall: (stream: ServerHttp2Stream, raw: readonly string[]) => () => void;
}

/**
 * Follows the sessions of a server: ends those that say nothing, are idle or gone, and all of them
 * at the end.
 */
export function followConnections(server: Http2Server, { limits, clock, onCall }: FollowDeps): Connections {
  const sessions: Sessions = new Map();
  let newest: Socket | undefined;
  let draining = false;

  // Before Node's own listener, which makes a session of it at once.
  server.prependListener('connection', (socket: Socket) => {
    newest = socket;
  });
  server.on('session', (session) => {
    const socket = newest;
    if (socket === undefined) return session.destroy();
    const nowMs = clock.monotonicMs();
    const watch = new PeerWatch(session, socket, { ...limits, silenceMs: limits.pingIntervalMs });
    const known: Known = { socket, watch, openedAtMs: nowMs, settled: false, calls: 0, idleSinceMs: nowMs };
    sessions.set(session, known);
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    session.once('remoteSettings', () => {
      known.settled = true;
    });
    session.on('stream', (stream, ...rest) => {
      known.calls += 1;
      const onClose = onCall(stream, rest[2]);
      stream.once('close', () => {
        known.calls -= 1;
        known.idleSinceMs = clock.monotonicMs();
        onClose();
      });
    });
    if (draining) session.close();
    // Whatever it is ends the session, and its calls get an event for that.
    session.on('error', () => undefined);
    session.once('close', () => sessions.delete(session));
    if (sessions.size > limits.connections && !makeRoom(sessions, session, limits)) session.destroy();
  });

  const timer = setInterval(() => check(sessions, limits, clock.monotonicMs()), CHECK_INTERVAL_MS);
  timer.unref();

  return {
    get size() {
      return sessions.size;
    },
    async drain(limitMs) {
      draining = true;
      // Calls that are already on their way are accepted (RFC 9113, section 6.8). Not by the
      // session's own method: after that, Node accepts none at all, silently.
      for (const [session, { socket }] of sessions) {
        if (!session.closed && !session.destroyed && socket.writable) socket.write(GOAWAY_NOTICE);
      }
      await Promise.all(sessions.keys().map(roundTrip));
      const closed = sessions.keys().map((session) => {
        session.close();
        return new Promise<void>((resolve) => session.once('close', resolve));
      });
      return Promise.race([Promise.all(closed).then(() => true), sleep(limitMs).then(() => false)]);
    },
    destroy() {
      clearInterval(timer);
      for (const [session, { socket }] of sessions) {
        session.destroy();
        // One that was closed before waits for its peer to close, too.
        socket.destroy();
      }
    },
  };
}

/**
 * Ends the connection that has been without a call for longest, where there are too many.
 *
 * @returns whether there is room for the newcomer.
 */
function makeRoom(sessions: Sessions, newcomer: ServerHttp2Session, { connections }: GrpcLimits): boolean {
  let open = 0;
  let idlest: [ServerHttp2Session, Known] | undefined;
  for (const [session, known] of sessions) {
    if (session.destroyed) continue;
    open += 1;
    const isIdler = idlest === undefined || known.idleSinceMs < idlest[1].idleSinceMs;
    if (session !== newcomer && known.calls === 0 && isIdler) idlest = [session, known];
  }
  if (open <= connections) return true;
  if (idlest === undefined) return false;
  const [session, { socket }] = idlest;
  // With GOAWAY: a call that is under way is made again elsewhere.
  session.close();
  session.destroy();
  socket.destroySoon();
  return true;
}

/** Ends connections that say nothing, are idle, or gone. */
function check(sessions: Sessions, { handshakeTimeoutMs, idleMs }: GrpcLimits, nowMs: number): void {
  for (const [session, { watch, settled, openedAtMs, calls, idleSinceMs }] of sessions) {
    watch.check(calls > 0);
    if (session.destroyed) continue;
    if (!settled && nowMs - openedAtMs >= handshakeTimeoutMs) session.destroy();
    else if (settled && calls === 0 && !session.closed && nowMs - idleSinceMs >= idleMs) session.close();
  }
}

async function roundTrip(session: ServerHttp2Session): Promise<void> {
  if (session.destroyed) return;
  const answered = new Promise<void>((resolve) => {
    session.ping(() => resolve());
  });
  await Promise.race([answered, sleep(GOAWAY_ROUND_TRIP_MS)]);
}
