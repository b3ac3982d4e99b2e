import type { ConnectionOptions } from './connections.ts';
import type { UpstreamOptions } from './upstreams.ts';

/** How much one replica of the proxy serves, and for how long it waits. */
export interface GrpcLimits extends ConnectionOptions, UpstreamOptions {
  /** Connections of callers; more are not accepted. */
  readonly connections: number;
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
  /** How long a caller that reads nothing may keep the end of its answer waiting. */
  readonly lingerMs: number;
}

export const defaultLimits: GrpcLimits = {
  connections: 10_000,
  calls: 10_000,
  callsPerConnection: 1000,
  connectionMemoryMiB: 64,
  resetBurst: 2000,
  resetsPerSecond: 100,
  lingerMs: 5000,
  maxHeaderBytes: 32 * 1024,
  windowBytes: 256 * 1024,
  handshakeTimeoutMs: 10_000,
  idleMs: 300_000,
  pingIntervalMs: 30_000,
  upstreamPingIntervalMs: 310_000,
  pingTimeoutMs: 20_000,
  callsPerSession: 100,
  sessionsPerTarget: 8,
  connectTimeoutMs: 5000,
  maxAgeMs: 600_000,
};
