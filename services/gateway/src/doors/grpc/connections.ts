import type { Http2Server, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { GrpcLimits } from './limits.ts';
import { CHECK_INTERVAL_MS, CONNECTION_WINDOW_BYTES, PeerWatch } from './peer-watch.ts';

/** The connections of callers. */
export interface Connections {
  readonly size: number;
  /** Ends whatever is left. */
  destroy(): void;
}

/** How long a peer has to close its side, too. */
const CLOSING_GRACE_MS = 3000;

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

/** Follows the sessions of a server, and ends those that say nothing, are idle or gone. */
export function followConnections(server: Http2Server, { limits, clock, onCall }: FollowDeps): Connections {
  const sockets = new Set<Socket>();
  let newest: Socket | undefined;

  function follow(session: ServerHttp2Session, socket: Socket): void {
    const watch = new PeerWatch({ ...limits, silenceMs: limits.pingIntervalMs });
    session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
    let calls = 0;
    let withoutCallsSinceMs = clock.monotonicMs();
    // Until the peer has sent its settings.
    let patienceMs = limits.handshakeTimeoutMs;
    session.once('remoteSettings', () => {
      patienceMs = limits.idleMs;
    });
    session.on('stream', (stream, ...rest) => {
      calls += 1;
      const onClose = onCall(stream, rest[2]);
      stream.once('close', () => {
        calls -= 1;
        withoutCallsSinceMs = clock.monotonicMs();
        onClose();
      });
    });
    const timer = setInterval(() => {
      if (!session.destroyed) watch.check(session, calls > 0);
      const idleMs = calls > 0 ? 0 : clock.monotonicMs() - withoutCallsSinceMs;
      if (idleMs >= patienceMs) session.close();
      // Node waits for the peer, which may never close its side, or read what was sent.
      if (idleMs >= (session.destroyed ? 0 : patienceMs) + CLOSING_GRACE_MS) socket.destroy();
    }, CHECK_INTERVAL_MS).unref();
    socket.once('close', () => clearInterval(timer));
    // Whatever it is ends the session, and its calls get an event for that.
    session.on('error', () => undefined);
  }

  // Before Node's own listener, which makes a session of it at once.
  server.prependListener('connection', (socket: Socket) => {
    newest = socket;
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('session', (session) => {
    if (newest !== undefined) follow(session, newest);
  });

  return {
    get size() {
      return sockets.size;
    },
    destroy() {
      for (const socket of sockets) socket.destroy();
    },
  };
}
