import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ConnectionOptions } from '@rollcall/client/transport.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { RequestTracing } from '@rollcall/platform/http/request-spans.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { createAwakeClock } from '@rollcall/platform/websocket/liveness.ts';
import type { Registry } from 'prom-client';
import type { AccessLog } from '../../access-log.ts';
import type { Authenticator } from '../../admission/caller.ts';
import type { Limits } from '../../admission/limits.ts';
import { asyncApiDocument } from './asyncapi.ts';
import type { ChannelSource } from './channels/channel-source.ts';
import { createRegistryFeeds } from './channels/registry-feeds.ts';
import { createConnectionSlots } from './connection-slots.ts';
import { defaultLimits, type WebSocketLimits } from './limits.ts';
import { createStats } from './metrics.ts';
import { openConnections } from './open-connections.ts';
import { PATH, upgrades } from './upgrade.ts';

export interface WebSocketsDeps {
  /** Where the registry is, and the token for it. */
  readonly registry: ConnectionOptions;
  readonly authenticator: Authenticator;
  /** Of requests: an upgrade is one. */
  readonly requestLimits: Pick<Limits, 'check'>;
  /** Undefined: it is off. */
  readonly accessLog?: AccessLog | undefined;
  /** Of the gateway, for the AsyncAPI document. */
  readonly version: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Registry;
  /** Undefined: upgrades are not traced. */
  readonly tracing?: RequestTracing | undefined;
  /** Limits that are not given are {@link defaultLimits}. */
  readonly limits?: Partial<WebSocketLimits>;
  /** Channels beside registrations and jobs. */
  readonly sources?: readonly ChannelSource[];
}

/** The WebSocket endpoint `/api/ws`. */
export interface WebSockets {
  /** For `upgrade` of the HTTP server; refuses what is not for `/api/ws`. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  /**
   * Follows the registry and checks the connections. Started before the HTTP server listens;
   * stopping it closes, too.
   */
  readonly actor: Actor;
  /**
   * Sends all clients elsewhere, and refuses new ones. Resolves once they are gone, or cut off
   * after the closing timeout.
   */
  close(): Promise<void>;
  /** The AsyncAPI document. */
  readonly document: object;
}

export function createWebSockets(deps: WebSocketsDeps): WebSockets {
  const { registry, authenticator, requestLimits, accessLog, tracing, clock, log } = deps;
  const limits = { ...defaultLimits, ...deps.limits };
  const feeds = createRegistryFeeds({ registry, log });
  const sources = [...feeds.sources, ...(deps.sources ?? [])];
  const slots = createConnectionSlots(limits);
  const stats = createStats(deps.metrics, () => slots.size);
  const open = openConnections({ authenticator, sources, limits, slots, stats, clock, log });
  const awake = createAwakeClock(() => clock.monotonicMs(), limits.tokenCheckMs * 2);
  let isClosing = false;
  let checks: NodeJS.Timeout | undefined;

  async function close(): Promise<void> {
    isClosing = true;
    await open.close();
  }

  return {
    handleUpgrade: upgrades({
      authenticator,
      requestLimits,
      limits,
      slots,
      stats,
      accessLog,
      tracing,
      clock,
      log,
      open: (socket, holder) => open.add(socket, holder),
      isClosing: () => isClosing,
    }),
    actor: {
      name: 'WebSockets',
      start() {
        feeds.start();
        checks ??= setInterval(() => open.check(awake()), limits.tokenCheckMs);
        return Promise.resolve();
      },
      async stop() {
        await close();
        clearInterval(checks);
        await feeds.stop();
      },
    },
    close,
    document: asyncApiDocument({
      version: deps.version,
      path: PATH,
      channels: sources.flatMap(({ channels }) => channels),
    }),
  };
}
