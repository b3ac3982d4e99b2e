import { promisify } from 'node:util';
import { anyAddress } from '../http/any-address.ts';
import type { App } from '../http/server.ts';
import { sleep } from '../retry.ts';
import type { Actor } from './lifecycle.ts';
import type { Logger } from './log.ts';
import type { ApiConfig } from './settings.ts';

/**
 * Of the time that a process has to stop, for draining and for answers to be fetched; the rest is
 * for writing what is pending.
 */
const CLOSING_GRACE_MS = 15_000;
const CLOSING_LEAST_MS = 2000;

/**
 * So long nobody has been connected before the drain ends: a caller that has not heard of it may
 * still come.
 */
const EMPTY_MS = 3000;
const EMPTY_CHECK_MS = 100;

/** How long callers may read their answers once the process has drained. */
export function closingLimitMs({ drainMs }: Pick<ApiConfig, 'drainMs'>): number {
  return Math.max(CLOSING_GRACE_MS - drainMs, CLOSING_LEAST_MS);
}

export interface HttpServerOptions {
  readonly config: ApiConfig;
  readonly log: Logger;
  /** Ends what stays open by itself, such as event streams, so that the server can close. */
  readonly beforeClose: () => Promise<void> | void;
}

/**
 * The API as a part of a process. Stopping, it drains first: proxies and clients are given time to
 * notice. A client that keeps its connections leaves with its next answer, and nothing but time
 * tells one that is done from one whose machine has stalled.
 */
export function httpServer(app: App, { config, log, beforeClose }: HttpServerOptions): Actor {
  const { host, port, drainMs } = config;
  return {
    name: 'HTTP server',
    async start() {
      const address = await app.listen({ host: host ?? (await anyAddress()), port });
      log.info({ address }, 'listens');
    },
    async stop() {
      await untilLeft(app, drainMs);
      await Promise.all([beforeClose(), app.close()]);
    },
  };
}

/** Waits until callers have left, at most as long as the drain may last. */
async function untilLeft({ server }: App, drainMs: number): Promise<void> {
  const countConnections = promisify(server.getConnections.bind(server));
  const startedAt = performance.now();
  let emptySince = startedAt;
  const onConnection = () => {
    emptySince = performance.now();
  };
  server.on('connection', onConnection);
  while (performance.now() - startedAt < drainMs && performance.now() - emptySince < EMPTY_MS) {
    await sleep(EMPTY_CHECK_MS);
    if ((await countConnections()) > 0) emptySince = performance.now();
  }
  server.off('connection', onConnection);
}
