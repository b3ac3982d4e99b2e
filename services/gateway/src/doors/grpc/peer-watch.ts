import type { Http2Session } from 'node:http2';
import type { Socket } from 'node:net';

/** How often {@link PeerWatch.check} is to be called. */
export const CHECK_INTERVAL_MS = 1000;
/** How long a peer has to close its side, too, once a session is over. */
const CLOSING_GRACE_MS = 3000;
/** How much may be on its way over a connection, before somebody reads it. */
export const CONNECTION_WINDOW_BYTES = 1024 * 1024;

interface Patience {
  /** A peer with calls from which nothing comes for so long is asked whether it is there... */
  readonly silenceMs: number;
  /** ...and has so long to answer. */
  readonly pingTimeoutMs: number;
}

/**
 * Ends the session of a peer that has vanished, and its socket where the peer keeps its side open.
 * Time is counted in checks: while this process stands still nobody is silent.
 *
 * A peer is asked by settings that change nothing, which it acknowledges at once (RFC 9113, section
 * 6.5.3). Servers of gRPC count pings, and not these; and Node sends no ping over a session that is
 * closed, though its calls may go on for long.
 */
export class PeerWatch {
  readonly #session: Http2Session;
  readonly #socket: Socket;
  readonly #patience: Patience;
  #bytesRead = 0;
  #silentMs = 0;
  #overMs = 0;
  #isAsked = false;
  /** Whether it was asked at an earlier check, and has not answered yet. */
  isSuspect = false;

  constructor(session: Http2Session, socket: Socket, patience: Patience) {
    this.#session = session;
    this.#socket = socket;
    this.#patience = patience;
  }

  check(hasCalls: boolean): void {
    if (this.#session.destroyed) {
      // Node waits for the peer, which may never close its side, or read what was sent.
      this.#overMs += CHECK_INTERVAL_MS;
      if (this.#overMs > CLOSING_GRACE_MS) this.#socket.destroy();
      return;
    }
    this.isSuspect = this.#isAsked;
    const { bytesRead } = this.#socket;
    if (hasCalls && bytesRead === this.#bytesRead) this.#silentMs += CHECK_INTERVAL_MS;
    else this.#silentMs = 0;
    this.#bytesRead = bytesRead;
    if (!this.#isAsked && this.#silentMs >= this.#patience.silenceMs) this.#ask();
  }

  #ask(): void {
    this.#isAsked = true;
    const overdue = setTimeout(
      () => this.#session.destroy(new Error('The peer does not answer')),
      this.#patience.pingTimeoutMs,
    ).unref();
    this.#session.settings({}, (error) => {
      if (error !== null) return;
      clearTimeout(overdue);
      this.#isAsked = false;
      this.isSuspect = false;
      this.#silentMs = 0;
    });
  }
}
