import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { createAccessLog } from '@rollcall/gateway/access-log.ts';
import type { Authenticator, Caller } from '@rollcall/gateway/admission/caller.ts';
import type { Verdict } from '@rollcall/gateway/admission/limits.ts';
import type { ChannelSource } from '@rollcall/gateway/doors/websocket/channels/channel-source.ts';
import type { WebSocketLimits } from '@rollcall/gateway/doors/websocket/limits.ts';
import { createWebSockets, type WebSockets } from '@rollcall/gateway/doors/websocket/websockets.ts';
import { GatewayError } from '@rollcall/gateway/errors.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createMetrics } from '@rollcall/platform/process/metrics.ts';

export interface WebSocketGatewayOptions {
  /** Of the registry; nobody answers at the default. */
  readonly registryUrl?: string;
  readonly limits?: Partial<WebSocketLimits>;
  readonly sources?: readonly ChannelSource[];
  /** How long a token takes to be checked. */
  readonly authenticationMs?: number;
}

/** The WebSocket endpoint on an HTTP server of its own, and tokens for it. */
export interface WebSocketGateway extends AsyncDisposable {
  readonly port: number;
  /** `ws://127.0.0.1:port/api/ws` */
  readonly url: string;
  readonly endpoint: WebSockets;
  /** Makes a token that is accepted from now on. */
  admit(token: string, caller?: Partial<Caller>): void;
  revoke(token: string): void;
  /** A sample of the metrics; undefined: it is not there. */
  metric(name: string): Promise<number | undefined>;
  /** Of the connections that are over. */
  durations(): Promise<{ readonly count: number; readonly seconds: number }>;
  /** Everything logged so far, at the finest level. */
  logs(): string;
  /** The lines of the access log so far. */
  requests(): readonly Readonly<Record<string, unknown>>[];
}

/** How much callers may ask for is another part of the gateway. */
const verdict: Verdict = { headers: { 'x-ratelimit-limit': '100' }, refusal: undefined };

const HOUR_MS = 3_600_000;

export async function startWebSocketGateway(options: WebSocketGatewayOptions = {}): Promise<WebSocketGateway> {
  const { registryUrl = 'http://127.0.0.1:9', limits = {}, sources = [], authenticationMs = 0 } = options;
  let logged = '';
  const sink = new Writable({
    write(chunk, _encoding, done) {
      logged += String(chunk);
      done();
    },
  });
  const tokens = new Map<string, Caller>();
  const metrics = createMetrics('test');
  const log = createLogger('test', 'trace', sink);
  const endpoint = createWebSockets({
    registry: { servers: registryUrl },
    authenticator: authenticatorOf(tokens, authenticationMs),
    accessLog: createAccessLog(log),
    requestLimits: { check: () => verdict },
    version: '0.0.0',
    clock: systemClock,
    log,
    metrics,
    limits,
    sources,
  });
  const server = createServer((_request, response) => response.writeHead(404).end());
  server.on('upgrade', (request, socket, head) => endpoint.handleUpgrade(request, socket, head));
  await endpoint.actor.start();
  const listening = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', listening.resolve);
  await listening.promise;
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `ws://127.0.0.1:${port}/api/ws`,
    endpoint,
    admit(token, caller = {}) {
      tokens.set(token, {
        subject: token,
        tier: 'standard',
        scopes: new Set(['*']),
        expiresAtMs: Date.now() + HOUR_MS,
        ...caller,
      });
    },
    revoke: (token) => void tokens.delete(token),
    async metric(name) {
      const values = (await metrics.getSingleMetric(name)?.get())?.values ?? [];
      return values.length === 0 ? undefined : values.reduce((sum, { value }) => sum + value, 0);
    },
    async durations() {
      const text = await metrics.metrics();
      const of = (part: string) =>
        Number(new RegExp(`^rollcall_gateway_websocket_duration_seconds_${part}\\{.*\\} (.*)$`, 'm').exec(text)?.[1]);
      return { count: of('count'), seconds: of('sum') };
    },
    logs: () => logged,
    requests: () =>
      logged
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line))
        .filter(({ msg }) => msg === 'request'),
    async [Symbol.asyncDispose]() {
      await endpoint.actor.stop();
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Who makes and checks real tokens is another part of the gateway. */
function authenticatorOf(tokens: ReadonlyMap<string, Caller>, tookMs: number): Authenticator {
  return {
    async authenticate(token) {
      await sleep(tookMs);
      const caller = tokens.get(token);
      if (caller === undefined) throw new GatewayError('INVALID_TOKEN');
      return caller;
    },
    stillHolds: (token) => tokens.has(token),
  };
}
