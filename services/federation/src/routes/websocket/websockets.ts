import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '@rollcall/platform/clock.ts';
import { commonError, invalidRequest } from '@rollcall/platform/common-errors.ts';
import type { ReadCaller } from '@rollcall/platform/http/callers.ts';
import { HttpError, serverError } from '@rollcall/platform/http/errors.ts';
import { headerFault } from '@rollcall/platform/http/request-head.ts';
import { REQUEST_ID_HEADER, requestIdOf } from '@rollcall/platform/http/request-id.ts';
import { toOriginForm } from '@rollcall/platform/http/request-target.ts';
import { pathOf } from '@rollcall/platform/http/server.ts';
import { answerToServiceError } from '@rollcall/platform/http/service-errors.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { createConcurrencyLimiter } from '@rollcall/platform/queues/concurrency-limiter.ts';
import { createAwakeClock } from '@rollcall/platform/websocket/liveness.ts';
import { refuse } from '@rollcall/platform/websocket/upgrade.ts';
import { Gauge, type Registry } from 'prom-client';
import { type WebSocket, WebSocketServer } from 'ws';
import { federationError } from '../../errors.ts';
import type { PassedHeaders } from '../../subgraphs/headers/passed-headers.ts';
import type { BeginOperation } from '../../subscriptions/operations.ts';
import { BODY_LIMIT_BYTES } from '../graphql-requests.ts';
import { Connection } from './connection.ts';
import { SUBPROTOCOL } from './messages.ts';

export interface GraphqlWebSocketsDeps {
  readonly begin: BeginOperation;
  /** @throws ServiceError NOT_FOUND where there is no such contract. */
  readonly requireContract: (contract: string | undefined) => void;
  readonly readCaller: ReadCaller;
  readonly carried: PassedHeaders['carried'];
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Registry;
}

/** GraphQL by WebSocket, at the path of GraphQL. */
export interface GraphqlWebSockets {
  /** For `upgrade` of the HTTP server. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  readonly actor: Actor;
  /** Sends all clients elsewhere, and takes no more. */
  close(): void;
}

/** Of the whole graph, or of what a contract shows of it. */
const PATH = /^\/api\/graphql(?:\/([^/]+))?$/;
const MOST_CONNECTIONS = 10_000;
/** Of one caller; of those who are not known yet, of one address. */
const MOST_OF_ONE = 1000;
const CHECK_MS = 500;
const SERVER = {
  noServer: true,
  clientTracking: false,
  // Its windows cost more memory than all else of a connection.
  perMessageDeflate: false,
  maxPayload: BODY_LIMIT_BYTES,
  maxFragments: 16,
  maxBufferedChunks: 1024,
  closeTimeout: 5000,
  handleProtocols: () => SUBPROTOCOL,
} as const;

export function createGraphqlWebSockets(deps: GraphqlWebSocketsDeps): GraphqlWebSockets {
  const { requireContract, readCaller, log } = deps;
  const server = new WebSocketServer(SERVER);
  const limiter = createConcurrencyLimiter({ most: MOST_CONNECTIONS, mostPerKey: MOST_OF_ONE });
  const connections = new Set<Connection>();
  const allWaiting = { characters: 0 };
  const awake = createAwakeClock(() => deps.clock.monotonicMs(), CHECK_MS * 2);
  let isClosing = false;
  let checks: NodeJS.Timeout | undefined;
  void new Gauge({
    name: 'rollcall_federation_websockets',
    help: 'Open WebSocket connections of clients.',
    registers: [deps.metrics],
    collect() {
      this.set(connections.size);
    },
  });

  async function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const fault = headerFault(request);
    if (fault !== undefined) throw invalidRequest([{ path: 'headers', message: fault }]);
    const [path, contract] = PATH.exec(pathOf(request.url)) ?? [];
    if (path === undefined) throw serverError('PATH_NOT_FOUND', { message: 'WebSockets are at /api/graphql' });
    requireContract(contract);
    requireProtocol(request);
    const caller = await readCaller(request);
    if (isClosing) throw commonError('UNAVAILABLE', { message: 'This replica stops; connect again' });
    // Gone while its token was checked: it would never say so again.
    if (socket.destroyed) return;
    const leave = limiter.tryEnter(caller?.subject ?? request.socket.remoteAddress ?? '');
    if (leave === undefined) throw federationError('TOO_MANY_SUBSCRIPTIONS');
    socket.once('close', leave);
    server.handleUpgrade(request, socket, head, (webSocket) => open(webSocket, request, contract));
  }

  function open(socket: WebSocket, { headers }: IncomingMessage, contract: string | undefined): void {
    const connection = new Connection({ ...deps, socket, headers, contract, allWaiting, awakeMs: awake() });
    connections.add(connection);
    socket.on('close', () => connections.delete(connection));
    if (isClosing) connection.leave();
  }

  function fail(error: unknown, { headers }: IncomingMessage, socket: Duplex): void {
    const answer = answerToServiceError(error) ?? (error instanceof HttpError ? error : undefined);
    if (answer === undefined) log.error({ err: error }, 'a WebSocket could not be opened');
    const id = requestIdOf(headers[REQUEST_ID_HEADER]);
    const message = 'The request failed for a reason of ours';
    refuse(socket, answer ?? serverError('INTERNAL', { message }), { [REQUEST_ID_HEADER]: id });
  }

  server.on('wsClientError', ({ message }, socket, request) =>
    fail(invalidRequest([{ path: 'headers', message }]), request, socket),
  );

  function close(): void {
    isClosing = true;
    for (const connection of connections) connection.leave();
  }

  return {
    handleUpgrade(request, socket, head) {
      // Node has removed its own listener, and a reset must not end the process.
      socket.on('error', () => socket.destroy());
      toOriginForm(request);
      upgrade(request, socket, head).catch((error: unknown) => fail(error, request, socket));
    },
    actor: {
      name: 'WebSockets',
      async start() {
        checks = setInterval(() => check(awake()), CHECK_MS);
      },
      async stop() {
        clearInterval(checks);
        close();
      },
    },
    close,
  };

  function check(awakeMs: number): void {
    for (const connection of connections) connection.check(awakeMs);
  }
}

/** What is offered, in RFC 6455, section 11.3.4. */
function requireProtocol({ headers }: IncomingMessage): void {
  const offered = headers['sec-websocket-protocol']?.split(',').map((protocol) => protocol.trim()) ?? [];
  if (offered.includes(SUBPROTOCOL)) return;
  throw invalidRequest([{ path: 'headers/sec-websocket-protocol', message: `must have ${SUBPROTOCOL}` }]);
}
