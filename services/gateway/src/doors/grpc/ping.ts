import type { Http2Session } from 'node:http2';

/**
 * Asks the peer whether it is there, and ends the session where no answer comes in time. Node sends no ping over a session that is
 * closed, because one side has sent GOAWAY, though calls may go on there for long; nor does such a session read on, or notice that its
 * peer has gone, once a frame was wrong. It is asked by settings.
 */
export function probe(session: Http2Session, timeoutMs: number): void {
  if (session.destroyed) return;
  if (session.closed) {
    probeBySettings(session, timeoutMs);
    return;
  }
  const overdue = endLater(session, timeoutMs);
  const sent = session.ping((error) => {
    if (error === null) clearTimeout(overdue);
  });
  // As many pings are on their way as may be: those decide.
  if (!sent) clearTimeout(overdue);
}

/** By settings that change nothing: they are acknowledged at once, too (RFC 9113, section 6.5.3). */
function probeBySettings(session: Http2Session, timeoutMs: number): void {
  const overdue = endLater(session, timeoutMs);
  session.settings({}, (error) => {
    if (error === null) clearTimeout(overdue);
  });
}

function endLater(session: Http2Session, timeoutMs: number): NodeJS.Timeout {
  return setTimeout(() => session.destroy(), timeoutMs).unref();
}
