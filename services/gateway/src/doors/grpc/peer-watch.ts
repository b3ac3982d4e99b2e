import type { Http2Session } from 'node:http2';

/** How often {@link PeerWatch.check} is to be called. */
export const CHECK_INTERVAL_MS = 1000;
/** How much may be on its way over a connection, before somebody reads it. */
export const CONNECTION_WINDOW_BYTES = 1024 * 1024;

/** Whole numbers of {@link CHECK_INTERVAL_MS}. */
interface Patience {
  /** A peer with calls from which nothing comes for so long is asked whether it is there... */
  readonly silenceMs: number;
  /** ...and has so long to answer. */
  readonly pingTimeoutMs: number;
}

/**
 * Ends the session of a peer that has vanished. Time is counted in checks: while this process
 * stands still nobody is silent.
 *
 * A peer is asked by settings that change nothing, which it acknowledges at once (RFC 9113, section
 * 6.5.3). Servers of gRPC count pings, and not these; and Node sends no ping over a session that is
 * closed, though its calls may go on for long.
 */
export class PeerWatch {
  readonly #patience: Patience;
  #bytesRead = 0;
  #silentMs = 0;

  constructor(patience: Patience) {
    this.#patience = patience;
  }

  /** Whether the peer was asked at an earlier check, and has not answered yet. */
  get isSuspect(): boolean {
    return this.#silentMs > this.#patience.silenceMs;
  }

  check(session: Http2Session, hasCalls: boolean): void {
    const { silenceMs, pingTimeoutMs } = this.#patience;
    const { bytesRead } = session.socket;
    this.#silentMs = hasCalls && bytesRead === this.#bytesRead ? this.#silentMs + CHECK_INTERVAL_MS : 0;
    this.#bytesRead = bytesRead;
    if (this.#silentMs === silenceMs) session.settings({});
    if (this.#silentMs >= silenceMs + pingTimeoutMs) session.destroy(new Error('The peer does not answer'));
  }
}
