import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { RequestTracing } from '@rollcall/platform/http/request-spans.ts';
import { pathOf } from '@rollcall/platform/http/server.ts';
import type { Logger } from '@rollcall/platform/log.ts';
import { type WebSocket, WebSocketServer } from 'ws';
import { type AccessEntry, type AccessLog, rounded } from '../access-log.ts';
import { GatewayError } from '../errors.ts';
import { admit } from '../policy/admission.ts';
import type { Authenticator, Holder } from '../policy/caller.ts';
import type { Limits } from '../policy/limits/limits.ts';
import { requestIdOf } from '../proxy/trace-context.ts';
import { tokenOf } from './credentials.ts';
import type { WebSocketLimits } from './limits.ts';
import type { Stats } from './metrics.ts';
import { SUBPROTOCOL } from './protocol.ts';
import { answerTo, refuse } from './refusal.ts';
import type { Room } from './room.ts';
import { createUpgradeSpans } from './upgrade-spans.ts';

export const PATH = '/api/ws';

/** Fragments of one message; a client has no reason for more. */
const MAX_FRAGMENTS = 64;

export interface UpgradeDeps {
  readonly authenticator: Pick<Authenticator, 'authenticate'>;
  /** Of requests: an upgrade is one. */
  readonly requestLimits: Pick<Limits, 'check'>;
  readonly limits: WebSocketLimits;
  readonly clock: Clock;
  /** Undefined: it is off. */
  readonly accessLog?: AccessLog | undefined;
  readonly room: Room;
  readonly stats: Stats;
  readonly log: Logger;
  readonly tracing?: RequestTracing | undefined;
  readonly open: (socket: WebSocket, holder: Holder) => void;
  /** Whether nobody is to be taken on any more. */
  readonly isClosing: () => boolean;
}

export function isWebSocketUpgrade({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}

/** An upgrade that is asked for, and what is known of it. */
interface Asked {
  readonly request: IncomingMessage;
  readonly requestId: string;
  readonly askedAtMs: number;
  /** For the answer, whatever it is. */
  readonly answerHeaders: Record<string, string>;
  subject?: string;
}

type HandleUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** Decides who gets a connection. Whoever does not is answered in HTTP, with the gateway's error body. */
export function upgrades(deps: UpgradeDeps): HandleUpgrade {
  const { room, stats, log } = deps;
  const server = createHandshake(deps.limits);
  const spans = deps.tracing === undefined ? undefined : createUpgradeSpans(deps.tracing, PATH);
  const upgrading = new WeakMap<IncomingMessage, Asked>();

  function checkRoom(): void {
    if (deps.isClosing()) {
      const headers = { 'retry-after': '1' };
      throw new GatewayError('TOO_MANY_CONNECTIONS', { message: 'This replica stops; connect again', headers });
    }
    room.check();
  }

  async function upgrade(asked: Asked, socket: Duplex, head: Buffer): Promise<void> {
    const { request } = asked;
    if (pathOf(request.url) !== PATH) throw new GatewayError('ROUTE_NOT_FOUND');
    checkRoom();
    const holder = await identify(deps, asked);
    const { subject } = holder.caller;
    asked.subject = subject;
    spans?.admit(socket, subject);
    checkRoom();
    room.checkFor(subject);
    server.handleUpgrade(request, socket, head, (webSocket) => {
      spans?.end(socket, 101);
      record(asked, { result: 101 });
      deps.open(webSocket, holder);
    });
  }

  function record(
    { request, requestId, subject, askedAtMs }: Asked,
    outcome: Pick<AccessEntry, 'result' | 'code'>,
  ): void {
    const ms = rounded(deps.clock.monotonicMs() - askedAtMs);
    const { method = '', url } = request;
    deps.accessLog?.write({ reqId: requestId, method, path: pathOf(url), subject, ...outcome, ms });
  }

  function fail(error: unknown, request: IncomingMessage, socket: Duplex): void {
    const answer = answerTo(error);
    const asked = upgrading.get(request);
    stats.refused(answer.code);
    spans?.end(socket, answer.statusCode);
    if (asked !== undefined) record(asked, { result: answer.statusCode, code: answer.code });
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
    // Node has taken its own listener away, and a reset must not end the process.
    socket.on('error', () => socket.destroy());
    spans?.begin(request, socket);
    const requestId = requestIdOf(request.headers['x-request-id']);
    const answerHeaders = { 'x-request-id': requestId };
    const asked: Asked = { request, requestId, askedAtMs: deps.clock.monotonicMs(), answerHeaders };
    upgrading.set(request, asked);
    upgrade(asked, socket, head).catch((error: unknown) => fail(error, request, socket));
  };
}

async function identify(deps: UpgradeDeps, { request, answerHeaders }: Asked): Promise<Holder> {
  const release = deps.room.reserve();
  try {
    const admission = { authenticator: deps.authenticator, limits: deps.requestLimits };
    const { holder, headers } = await admit(admission, request, { token: () => tokenOf(request.headers) });
    if (holder === undefined) throw new GatewayError('UNAUTHENTICATED');
    Object.assign(answerHeaders, headers);
    return holder;
  } finally {
    release();
  }
}

function createHandshake({ messageBytes, closeTimeoutMs }: WebSocketLimits): WebSocketServer {
  const options = {
    noServer: true,
    clientTracking: false,
    // Its windows cost more memory than all else of a connection, and each connection would compress for itself.
    perMessageDeflate: false,
    maxPayload: messageBytes,
    maxFragments: MAX_FRAGMENTS,
    closeTimeout: closeTimeoutMs,
    // Never the one that holds the token.
    handleProtocols: (protocols: ReadonlySet<string>) => (protocols.has(SUBPROTOCOL) ? SUBPROTOCOL : false),
  } as const;
  return new WebSocketServer(options);
}
