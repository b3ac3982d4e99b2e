import type { Http2Server, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { Clock } from '@rollcall/platform/clock.ts';
import { sleep } from '@rollcall/platform/retry.ts';

export interface ConnectionOptions {
  /** So many at once; a new one replaces the ones that have been without a call for longest. */
  readonly connections: number;
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
  /** Sends GOAWAY to all callers; resolves when all connections are gone, within the time. */
  drain(limitMs: number): Promise<boolean>;
  /** Ends whatever is left. */
  destroy(): void;
}

interface Known {
  readonly socket: Socket;
  readonly openedAtMs: number;
  /** Whether the peer has sent its settings. */
  settled: boolean;
  calls: number;
  idleSinceMs: number;
  probeDueAtMs: number;
  /** When its session was first seen to be over. */
  overAtMs: number | undefined;
}

type Sessions = Map<ServerHttp2Session, Known>;

const CHECK_INTERVAL_MS = 1000;
/** How long a peer has to close its side, too, once a session is over. */
const CLOSING_GRACE_MS = 3000;
/** So many are ended at once: finding them costs more than ending them. */
const EVICTED_SHARE = 0.01;
/** A caller that is slow to answer may have begun calls that it believes are accepted. */
const GOAWAY_ROUND_TRIP_MS = 1000;
/** GOAWAY, NO_ERROR, with the highest number that a stream may have. */
const GOAWAY_NOTICE = Buffer.from([0, 0, 8, 7, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]);

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

/**
 * Follows the sessions of a server: ends those that say nothing, are idle or gone, and all of them
 * at the end.
 */
export function followConnections(server: Http2Server, { options, clock, onCall }: FollowDeps): Connections {
  const sessions: Sessions = new Map();
  const sockets = new Set<Socket>();
  let newest: Socket | undefined;
  let onEmpty: (() => void) | undefined;
  let draining = false;

  // Before Node's own listener, which makes a session of it at once.
  server.prependListener('connection', (socket: Socket) => {
    newest = socket;
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('session', (session) => {
    const socket = newest;
    if (socket === undefined) return session.destroy();
    const nowMs = clock.monotonicMs();
    const known: Known = {
      socket,
      openedAtMs: nowMs,
      settled: false,
      calls: 0,
      idleSinceMs: nowMs,
      probeDueAtMs: nowMs + options.pingIntervalMs,
      overAtMs: undefined,
    };
    sessions.set(session, known);
    session.setLocalWindowSize(Math.max(options.windowBytes * 4, CONNECTION_WINDOW_BYTES));
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
    session.once('close', () => {
      sessions.delete(session);
      if (sessions.size === 0) onEmpty?.();
    });
    if (sessions.size > options.connections && !evictIdle(sessions, session, options)) session.destroy();
  });

  const timer = setInterval(() => check(sessions, options, clock.monotonicMs()), CHECK_INTERVAL_MS);
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
      // Calls that are already on their way are accepted (RFC 9113, section 6.8). Not by the
      // session's own method: after that, Node accepts none at all, silently.
      for (const [session, { socket }] of sessions) {
        if (!session.closed && !session.destroyed && socket.writable) socket.write(GOAWAY_NOTICE);
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

/**
 * Ends connections without a call, those first that have had none for longest.
 *
 * @returns whether one more may be opened.
 */
function evictIdle(sessions: Sessions, newcomer: ServerHttp2Session, { connections }: ConnectionOptions): boolean {
  const open = [...sessions].filter(([session]) => !session.destroyed);
  if (open.length <= connections) return true;
  const idle = open.filter(([session, { calls }]) => session !== newcomer && calls === 0);
  idle.sort(([, one], [, other]) => one.idleSinceMs - other.idleSinceMs);
  const evicted = idle.slice(0, Math.ceil(connections * EVICTED_SHARE));
  for (const [session, { socket }] of evicted) {
    // With GOAWAY: a call that is under way is made again elsewhere.
    session.close();
    session.destroy();
    socket.destroySoon();
  }
  return evicted.length > 0;
}

/** Ends connections that say nothing, are idle, or gone. */
function check(sessions: Sessions, options: ConnectionOptions, nowMs: number): void {
  for (const [session, known] of sessions) {
    if (session.destroyed) {
      // Node waits for the peer, which may never close its side, or read what was sent.
      known.overAtMs ??= nowMs;
      if (nowMs - known.overAtMs >= CLOSING_GRACE_MS) known.socket.destroy();
    } else if (!known.settled) {
      if (nowMs - known.openedAtMs >= options.handshakeTimeoutMs) session.destroy();
    } else if (known.calls === 0 && !session.closed && nowMs - known.idleSinceMs >= options.idleMs) {
      session.close();
    } else if (nowMs >= known.probeDueAtMs) {
      known.probeDueAtMs = nowMs + options.pingIntervalMs;
      probe(session, options.pingTimeoutMs);
    }
  }
}

const CONNECTION_WINDOW_BYTES = 1024 * 1024;

async function roundTrip(session: ServerHttp2Session): Promise<void> {
  if (session.destroyed) return;
  const answered = new Promise<void>((resolve) => {
    session.ping(() => resolve());
  });
  await Promise.race([answered, sleep(GOAWAY_ROUND_TRIP_MS)]);
}

/**
 * Asks the peer whether it is there, and ends the session where no answer comes in time. Node sends
 * no ping over a session that is closed, because one side has sent GOAWAY, though calls may go on
 * there for long; nor does such a session read on, or notice that its peer has gone, once a frame
 * was wrong. It is asked by settings that change nothing, which are acknowledged at once, too (RFC
 * 9113, section 6.5.3).
 */
function probe(session: ServerHttp2Session, timeoutMs: number): void {
  const overdue = setTimeout(() => session.destroy(), timeoutMs).unref();
  session.settings({}, (error) => {
    if (error === null) clearTimeout(overdue);
  });
}
