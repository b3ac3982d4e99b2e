import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { RequestTracing } from '@rollcall/platform/http/request-spans.ts';
import type { Logger } from '@rollcall/platform/log.ts';
import { type WebSocket, WebSocketServer } from 'ws';
import { GatewayError } from '../errors.ts';
import type { Authenticator } from '../policy/caller.ts';
import { tokenOf } from './credentials.ts';
import type { WebSocketLimits } from './limits.ts';
import type { Stats } from './metrics.ts';
import type { Holder } from './open-connections.ts';
import { SUBPROTOCOL } from './protocol.ts';
import { answerTo, refuse } from './refusal.ts';
import type { Room } from './room.ts';
import { createUpgradeSpans } from './upgrade-spans.ts';

export const PATH = '/api/ws';

/** Fragments of one message; a client has no reason for more. */
const MAX_FRAGMENTS = 64;

export interface UpgradeDeps {
  readonly authenticator: Pick<Authenticator, 'authenticate'>;
  readonly limits: WebSocketLimits;
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

type HandleUpgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** Decides who gets a connection. Whoever does not is answered in HTTP, with the gateway's error body. */
export function upgrades(deps: UpgradeDeps): HandleUpgrade {
  const { room, stats, log } = deps;
  const server = createHandshake(deps.limits);
  const spans = deps.tracing === undefined ? undefined : createUpgradeSpans(deps.tracing, PATH);

  function checkRoom(): void {
    if (deps.isClosing()) {
      const headers = { 'retry-after': '1' };
      throw new GatewayError('TOO_MANY_CONNECTIONS', { message: 'This replica stops; connect again', headers });
    }
    room.check();
  }

  async function identify({ headers }: IncomingMessage): Promise<Holder> {
    const release = room.reserve();
    try {
      const token = tokenOf(headers);
      return { token, caller: await deps.authenticator.authenticate(token) };
    } finally {
      release();
    }
  }

  async function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    if (request.url?.split('?', 1)[0] !== PATH) throw new GatewayError('ROUTE_NOT_FOUND');
    checkRoom();
    const holder = await identify(request);
    spans?.admit(socket, holder.caller.subject);
    checkRoom();
    room.checkFor(holder.caller.subject);
    server.handleUpgrade(request, socket, head, (webSocket) => {
      spans?.end(socket, 101);
      deps.open(webSocket, holder);
    });
  }

  function fail(error: unknown, socket: Duplex): void {
    const answer = answerTo(error);
    stats.refused(answer.code);
    spans?.end(socket, answer.statusCode);
    if (answer.statusCode === 500) log.error({ err: error }, 'WebSocket upgrade failed');
    refuse(socket, answer);
  }

  server.on('wsClientError', ({ message }, socket) => {
    fail(new GatewayError('INVALID_REQUEST', { message, headers: { 'sec-websocket-version': '13' } }), socket);
  });

  return (request, socket, head) => {
    // Node has taken its own listener away, and a reset must not end the process.
    socket.on('error', () => socket.destroy());
    spans?.begin(request, socket);
    upgrade(request, socket, head).catch((error: unknown) => fail(error, socket));
  };
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
