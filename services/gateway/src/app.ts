import { codedErrorBody } from '@rollcall/platform/http/errors.ts';
import type { RequestTracing } from '@rollcall/platform/http/request-spans.ts';
import { type App, createServer } from '@rollcall/platform/http/server.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { isWebSocketUpgrade } from '@rollcall/platform/websocket/upgrade.ts';
import type { Registry } from 'prom-client';
import type { AccessLog } from './access-log.ts';
import { endSlowCallers, type SlowCallersPolicy } from './admission/slow-callers.ts';
import { allowOrigins } from './cors.ts';
import { mapError } from './errors.ts';
import { documentation } from './routes/documentation.ts';
import { logRawRefusal } from './routes/request-log.ts';

/** A group of routes, with content type parsers of its own. */
export type Routes = (app: App) => void;

export interface AppDeps {
  readonly log: Logger;
  readonly metrics: Registry;
  /** Of the gateway, for the OpenAPI document. */
  readonly version: string;
  /** Undefined: it is off. */
  readonly accessLog: AccessLog | undefined;
  readonly bodyLimit: number;
  readonly routes: readonly Routes[];
  /** Of pages that may call; none: the gateway says nothing of that. */
  readonly corsOrigins: ReadonlySet<string>;
  /** Undefined: requests are not traced. */
  readonly tracing: RequestTracing | undefined;
  /** How long callers may read their answers once the app closes. */
  readonly closingLimitMs: number;
  /** Whether answers are to close their connections, as long as the process drains. */
  readonly isStopping: () => boolean;
}

/** Uploads may take long, if they come at all: see the policy for slow callers. */
const REQUEST_TIMEOUT_MS = 600_000;
/** A client that sends its headers byte by byte holds no connection for longer. */
const HEADERS_TIMEOUT_MS = 10_000;
const CHECK_INTERVAL_MS = 2000;
/**
 * Each needs some 12 KiB, for which the chart's limit of memory suffices; 10,000 of them may be
 * WebSockets.
 */
const MAX_CONNECTIONS = 20_000;
/** The rate is Kestrel's; that nothing is read for a minute is what nginx allows, too. */
const SLOW_CALLERS: SlowCallersPolicy = {
  checkIntervalMs: CHECK_INTERVAL_MS,
  leastBytesPerSecond: 240,
  sendingGraceMs: 30_000,
  readingGraceMs: 60_000,
};

/** The gateway's HTTP application. It does not listen. */
export async function buildApp(deps: AppDeps): Promise<App> {
  const { log, accessLog, metrics, version, bodyLimit, routes, corsOrigins, tracing, closingLimitMs, isStopping } =
    deps;
  const app = createServer({
    log,
    metrics,
    bodyLimit,
    tracing,
    closingLimitMs,
    isStopping,
    mapError,
    renderError: codedErrorBody,
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
    connectionsCheckingIntervalMs: CHECK_INTERVAL_MS,
    acceptsUpgrade: isWebSocketUpgrade,
    ...(accessLog === undefined ? {} : { onRawRefusal: (refusal) => logRawRefusal(refusal, accessLog) }),
  });
  app.server.headersTimeout = HEADERS_TIMEOUT_MS;
  app.server.maxConnections = MAX_CONNECTIONS;
  endSlowCallers(app, metrics, SLOW_CALLERS);
  if (corsOrigins.size > 0) allowOrigins(app, corsOrigins);
  await documentation(app, version, accessLog);
  for (const register of routes) {
    await app.register(async (scope) => register(scope as App));
  }
  return app;
}
