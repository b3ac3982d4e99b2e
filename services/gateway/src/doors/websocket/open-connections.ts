import type { Clock } from '@rollcall/platform/clock.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import type { WebSocket } from 'ws';
import type { Authenticator, Holder } from '../../admission/caller.ts';
import type { ChannelSource } from './channels/channel-source.ts';
import { type Connection, createConnection } from './connection.ts';
import type { ConnectionSlots } from './connection-slots.ts';
import type { WebSocketLimits } from './limits.ts';
import type { Stats } from './metrics.ts';

/** Clients of a replica that stops come back over as many milliseconds as there are of them. */
const RETURN_SPREAD_MS = 1;

export interface OpenConnectionsDeps {
  readonly authenticator: Pick<Authenticator, 'stillHolds'>;
  readonly sources: readonly ChannelSource[];
  readonly limits: WebSocketLimits;
  readonly slots: ConnectionSlots;
  readonly stats: Stats;
  readonly clock: Clock;
  readonly log: Logger;
}

/** All connections of this process. */
export interface OpenConnections {
  add(socket: WebSocket, holder: Holder): Connection;
  /** Checks each of them; see {@link createAwakeClock}. */
  check(awakeMs: number): void;
  /**
   * Sends all clients elsewhere. Resolves once they are gone, or cut off after the closing timeout.
   */
  close(): Promise<void>;
}

export function openConnections(deps: OpenConnectionsDeps): OpenConnections {
  const { authenticator, sources, limits, slots, stats, clock, log } = deps;
  const connections = new Set<Connection>();
  let awakeMs = 0;
  let onEmpty: (() => void) | undefined;

  return {
    add(socket, { caller, token }) {
      const { subject } = caller;
      const leave = slots.acquire(subject);
      // First of all: whatever fails below, the slot is released once the socket closes.
      socket.on('close', leave);
      const stillHolds = () => authenticator.stillHolds(token);
      const connection = createConnection({ socket, caller, stillHolds, sources, limits, stats, clock, awakeMs });
      connections.add(connection);
      log.debug({ subject }, 'WebSocket opened');
      socket.on('close', (code) => {
        connections.delete(connection);
        log.debug({ subject, code }, 'WebSocket closed');
        if (connections.size === 0) onEmpty?.();
      });
      return connection;
    },
    check(now) {
      awakeMs = now;
      for (const connection of connections) connection.check(now);
    },
    async close() {
      const { promise: emptied, resolve } = Promise.withResolvers<void>();
      onEmpty = resolve;
      if (connections.size === 0) resolve();
      const spreadMs = connections.size * RETURN_SPREAD_MS;
      for (const connection of connections) connection.sayGoodbye(Math.round(Math.random() * spreadMs));
      const deadline = new AbortController();
      await Promise.race([emptied, sleep(limits.closeTimeoutMs, deadline.signal)]);
      deadline.abort();
      for (const connection of connections) connection.terminate();
    },
  };
}
