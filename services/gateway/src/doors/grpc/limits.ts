import type { BackendPoolOptions } from './backend-pool.ts';
import type { ConnectionOptions } from './connections.ts';
import type { OwnHealthLimits } from './health.ts';
import type { SweepLimits } from './sweep.ts';

/** How much one replica of the proxy serves, and for how long it waits. */
export interface GrpcLimits extends ConnectionOptions, SweepLimits, OwnHealthLimits, BackendPoolOptions {
  /** Calls under way at once, on all connections; more get UNAVAILABLE. */
  readonly calls: number;
  /** Callers' libraries let further calls wait. */
  readonly callsPerConnection: number;
  /** Of what is held for one connection; at the limit it gets no further calls. */
  readonly connectionMemoryMiB: number;
  /** A connection may reset so many calls at once... */
  readonly resetBurst: number;
  /** ...and so many in each second after. */
  readonly resetsPerSecond: number;
  /** Calls of one subject under way at once; more get RESOURCE_EXHAUSTED. */
  readonly callsPerSubject: number;
  /**
   * What may be kept of all calls to be sent again; a call of which nothing could be kept is not
   * made again.
   */
  readonly replayBytes: number;
}

/** A burst is what a connection may save up in 20 s. */
export function resetLimits(resetsPerSecond: number): Pick<GrpcLimits, 'resetBurst' | 'resetsPerSecond'> {
  return { resetsPerSecond, resetBurst: 20 * resetsPerSecond };
}

export const defaultLimits: GrpcLimits = {
  connections: 10_000,
  calls: 10_000,
  callsPerConnection: 1000,
  callsPerSubject: 1000,
  connectionMemoryMiB: 64,
  ...resetLimits(100),
  lingerMs: 5000,
  readingGraceMs: 60_000,
  unreadBytes: 64 * 1024 * 1024,
  replayBytes: 16 * 1024 * 1024,
  watchesPerConnection: 20,
  watchMaxAgeMs: 600_000,
  maxHeaderBytes: 32 * 1024,
  windowBytes: 64 * 1024,
  handshakeTimeoutMs: 10_000,
  idleMs: 300_000,
  pingIntervalMs: 30_000,
  silenceMs: 10_000,
  quietMs: 310_000,
  pingTimeoutMs: 20_000,
  callsPerSession: 100,
  sessionsPerTarget: 8,
  connectTimeoutMs: 5000,
  maxAgeMs: 600_000,
};
