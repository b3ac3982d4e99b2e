import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '@rollcall/platform/clock.ts';
import { headerFault } from '@rollcall/platform/http/request-head.ts';
import type { RequestTracing } from '@rollcall/platform/http/request-spans.ts';
import { toOriginForm } from '@rollcall/platform/http/request-target.ts';
import { pathOf } from '@rollcall/platform/http/server.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { refuse } from '@rollcall/platform/websocket/upgrade.ts';
import { type WebSocket, WebSocketServer } from 'ws';
import { type AccessLog, rounded } from '../../access-log.ts';
import { type Arrived, admit } from '../../admission/admission.ts';
import { unauthenticated } from '../../admission/bearer.ts';
import type { Authenticator, Holder } from '../../admission/caller.ts';
import type { Limits } from '../../admission/limits.ts';
import { answerTo, GatewayError } from '../../errors.ts';
import { AskedUpgrade, type Names } from './asked-upgrade.ts';
import type { Connection } from './connection.ts';
import type { ConnectionSlots } from './connection-slots.ts';
import { tokenOf } from './credentials.ts';
import type { WebSocketLimits } from './limits.ts';
import type { Stats } from './metrics.ts';
import { closeCodes, SUBPROTOCOL } from './protocol.ts';
import { createUpgradeSpans } from './upgrade-spans.ts';

export const PATH = '/api/ws';

/**
 * Fragments of one message; a client has no reason for more. Each may keep the whole piece of the
 * stream that it came in.
 */
const MAX_FRAGMENTS = 4;
/**
 * Pieces in which an unfinished frame may come: what does so byte by byte costs 200 times its size.
 */
const MAX_PIECES = 32;

export interface UpgradeDeps {
  readonly authenticator: Pick<Authenticator, 'authenticate'>;
  /** Of requests: an upgrade is one. */
  readonly requestLimits: Pick<Limits, 'check'>;
  readonly limits: WebSocketLimits;
  readonly clock: Clock;
  /** Undefined: it is off. */
  readonly accessLog?: AccessLog | undefined;
  readonly slots: ConnectionSlots;
  readonly stats: Stats;
  readonly log: Logger;
  readonly tracing?: RequestTracing | undefined;
  readonly open: (socket: WebSocket, holder: Holder) => Pick<Connection, 'eventsSent'>;
  /** Whether no more connections are accepted. */
  readonly isClosing: () => boolean;
}

type HandleUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/**
 * Decides who gets a connection. Whoever does not is answered in HTTP, with the gateway's error
 * body.
 */
export function upgrades(deps: UpgradeDeps): HandleUpgrade {
  const { slots, stats, log } = deps;
  const server = createHandshake(deps.limits);
  const spans =
    deps.tracing === undefined
      ? undefined
      : createUpgradeSpans(deps.tracing, ({ url }) => (pathOf(url) === PATH ? PATH : undefined));
  const upgrading = new WeakMap<IncomingMessage, AskedUpgrade>();

  function checkSlots(): void {
    if (deps.isClosing()) {
      throw new GatewayError('TOO_MANY_CONNECTIONS', { message: 'This replica stops; connect again' });
    }
    slots.check();
  }

  async function upgrade(asked: AskedUpgrade, socket: Duplex, head: Buffer): Promise<void> {
    const { request } = asked;
    const fault = headerFault(request);
    if (fault !== undefined) throw new GatewayError('INVALID_REQUEST', { message: fault });
    if (pathOf(request.url) !== PATH) throw new GatewayError('ROUTE_NOT_FOUND');
    checkSlots();
    const holder = await identify(deps, asked);
    const { subject } = holder.caller;
    spans?.of(socket)?.set({ 'rollcall.client': subject });
    checkSlots();
    slots.checkFor(subject);
    server.handleUpgrade(request, socket, head, (webSocket) => {
      spans?.end(socket, 101);
      asked.record({ result: 101 });
      open(webSocket, holder, asked.names);
    });
  }

  /** Keeps nothing of the request itself: there are many connections, and they last. */
  function open(webSocket: WebSocket, holder: Holder, names: Names): void {
    const openedAtMs = deps.clock.monotonicMs();
    let connection: Pick<Connection, 'eventsSent'> | undefined;
    stats.opened.inc();
    webSocket.on('close', (code) => {
      const ms = deps.clock.monotonicMs() - openedAtMs;
      stats.durations.observe(ms / 1000);
      deps.accessLog?.write({ ...names, result: code, events: connection?.eventsSent ?? 0, ms: rounded(ms) });
    });
    try {
      connection = deps.open(webSocket, holder);
    } catch (error) {
      // The stream is no longer HTTP: an answer with 500 would be read as a frame.
      log.error({ err: error, reqId: names.reqId }, 'WebSocket failed');
      stats.closed.inc({ code: closeCodes.INTERNAL });
      webSocket.on('error', () => undefined);
      webSocket.close(closeCodes.INTERNAL, 'an error of the gateway');
    }
  }

  function fail(error: unknown, request: IncomingMessage, socket: Duplex): void {
    const answer = answerTo(error);
    const asked = upgrading.get(request);
    stats.refused.inc({ code: answer.code });
    spans?.end(socket, answer.statusCode);
    asked?.record({ result: answer.statusCode, code: answer.code });
    if (answer.statusCode === 500) log.error({ err: error }, 'WebSocket upgrade failed');
    refuse(socket, answer, asked?.answerHeaders);
  }

  server.on('wsClientError', ({ message }, socket, request) => {
    fail(new GatewayError('INVALID_REQUEST', { message, headers: { 'sec-websocket-version': '13' } }), request, socket);
  });
  server.on('headers', (lines, request) => {
    const { answerHeaders = {} } = upgrading.get(request) ?? {};
    for (const [name, value] of Object.entries(answerHeaders)) lines.push(`${name}: ${value}`);
  });

  return (request, socket, head) => {
    // Node has removed its own listener, and a reset must not end the process.
    socket.on('error', () => socket.destroy());
    toOriginForm(request);
    spans?.begin(request, socket);
    const asked = new AskedUpgrade(request, spans?.of(socket), deps);
    upgrading.set(request, asked);
    upgrade(asked, socket, head).catch((error: unknown) => fail(error, request, socket));
  };
}

/** Scopes are asked for with each channel. */
async function identify({ authenticator, requestLimits, slots }: UpgradeDeps, asked: AskedUpgrade): Promise<Holder> {
  const { request } = asked;
  const release = slots.reserve();
  try {
    const arrived: Arrived = {
      remoteAddress: request.socket.remoteAddress,
      forwardedFor: request.headers['x-forwarded-for'],
      token: () => tokenOf(request),
      onCounted: (counted) => asked.counted(counted),
    };
    const { holder } = await admit({ authenticator, limits: requestLimits }, arrived, () => ({ scopes: [] }));
    if (holder === undefined) throw unauthenticated();
    return holder;
  } finally {
    release();
  }
}

function createHandshake({ messageBytes, closeTimeoutMs }: WebSocketLimits): WebSocketServer {
  const options = {
    noServer: true,
    clientTracking: false,
    // Its windows cost more memory than all else of a connection, and each connection would
    // compress for itself.
    perMessageDeflate: false,
    maxPayload: messageBytes,
    maxFragments: MAX_FRAGMENTS,
    maxBufferedChunks: MAX_PIECES,
    closeTimeout: closeTimeoutMs,
    // Never the one that holds the token.
    handleProtocols: (protocols: ReadonlySet<string>) => (protocols.has(SUBPROTOCOL) ? SUBPROTOCOL : false),
  } as const;
  return new WebSocketServer(options);
}
