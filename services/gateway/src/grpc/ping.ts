import type { Http2Session } from 'node:http2';

/** Asks the peer whether it is there, and ends the session where no answer comes in time. */
export function ping(session: Http2Session, timeoutMs: number): void {
  if (session.destroyed) return;
  const overdue = setTimeout(() => session.destroy(), timeoutMs);
  overdue.unref();
  const sent = session.ping((error) => {
    if (error === null) clearTimeout(overdue);
  });
  // As many pings are on their way as may be: those decide.
  if (!sent) clearTimeout(overdue);
}
