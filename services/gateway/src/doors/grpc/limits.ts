/** How much one replica of the proxy serves, and for how long it waits. */
export type GrpcLimits = { readonly [Name in keyof typeof defaultLimits]: number };

export const defaultLimits = {
  /** Of callers; more are closed at once. */
  connections: 10_000,
  /**
   * Calls under way at once, on all connections; more get UNAVAILABLE. Each may keep a window of
   * 64 KiB that nobody reads: 256 MiB in all, beside which a pod of 512 MiB has room.
   */
  calls: 4000,
  /** Callers' libraries let further calls wait. */
  callsPerConnection: 1000,
  /** More calls of one subject at once get RESOURCE_EXHAUSTED. */
  callsPerSubject: 1000,
  /** Of what is held for one connection; at the limit it gets no further calls. */
  connectionMemoryMiB: 64,
  /** A connection may reset so many calls in a second, and save up those of 20 s. */
  resetsPerSecond: 100,
  /**
   * How long a caller that reads nothing may keep an answer waiting that the gateway has ended, and
   * how long a question after the gateway's health may take...
   */
  lingerMs: 5000,
  /** ...and how long what its backend has answered, of which it reads some 50 KiB at a time. */
  readingGraceMs: 60_000,
  maxHeaderBytes: 32 * 1024,
  /** Who has connected and not begun to speak HTTP/2 by then is disconnected. */
  handshakeTimeoutMs: 10_000,
  /** A connection without calls is closed after that. */
  idleMs: 300_000,
  /** A caller with calls from which nothing comes for so long is asked whether it is there... */
  pingIntervalMs: 30_000,
  /** ...and so is a backend after that; */
  silenceMs: 10_000,
  /** both have so long to answer. */
  pingTimeoutMs: 20_000,
  /** A backend gets another connection when each that it has carries so many calls... */
  callsPerSession: 100,
  /** ...up to so many connections; then they carry more. */
  sessionsPerTarget: 8,
  /** For a connection to a backend, and the settings that it speaks first. */
  connectTimeoutMs: 5000,
  /** One to a backend gets no new calls after that, so that calls spread over pods that came later. */
  maxAgeMs: 600_000,
};
