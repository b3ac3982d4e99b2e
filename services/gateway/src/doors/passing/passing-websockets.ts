import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '@rollcall/platform/clock.ts';
import { headerFault } from '@rollcall/platform/http/request-head.ts';
import type { RequestTracing } from '@rollcall/platform/http/request-spans.ts';
import { toOriginForm } from '@rollcall/platform/http/request-target.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { createAwakeClock } from '@rollcall/platform/websocket/liveness.ts';
import { answerUpgrade, refuse } from '@rollcall/platform/websocket/upgrade.ts';
import { Gauge, type Registry } from 'prom-client';
import { type WebSocket, WebSocketServer } from 'ws';
import { type AccessLog, rounded } from '../../access-log.ts';
import { unauthenticated } from '../../admission/bearer.ts';
import { answerTo, GatewayError } from '../../errors.ts';
import { splitTarget } from '../../upstream/routing/path.ts';
import type { Route } from '../../upstream/routing/table.ts';
import { routePattern } from '../rest/attempt-span.ts';
import { AskedUpgrade } from '../websocket/asked-upgrade.ts';
import { createConnectionSlots } from '../websocket/connection-slots.ts';
import { createUpgradeSpans, type UpgradeSpans } from '../websocket/upgrade-spans.ts';
import { closeCodes } from './close-codes.ts';
import { GRAPHQL_PROTOCOL, readConnectionInit } from './connection-init.ts';
import { type Grant, type GrantsDeps, grant, openGranted } from './grants.ts';
import { limits } from './limits.ts';
import { Passage } from './passage.ts';
import { AnsweredError } from './service-socket.ts';

export interface PassingWebSocketsDeps extends GrantsDeps {
  /** Undefined: it is off. */
  readonly accessLog: AccessLog | undefined;
  /** Undefined: upgrades are not traced. */
  readonly tracing: RequestTracing | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Registry;
}

/** WebSockets to services, at the paths of their requests. */
export interface PassingWebSockets {
  /** For `upgrade` of the HTTP server. */
  handleUpgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  readonly actor: Actor;
  /** Sends all clients elsewhere, and takes no more. */
  close(): void;
}

const SERVER = {
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: limits.clientMessageBytes,
  closeTimeout: limits.closeTimeoutMs,
} as const;

export function createPassingWebSockets(deps: PassingWebSocketsDeps): PassingWebSockets {
  const passing = new Passing(deps);
  const awake = createAwakeClock(() => deps.clock.monotonicMs(), limits.tokenCheckMs * 2);
  let checks: NodeJS.Timeout | undefined;
  return {
    handleUpgrade: (request, socket, head) => passing.handle(request, socket, head),
    actor: {
      name: 'WebSockets of services',
      async start() {
        checks = setInterval(() => passing.check(awake()), limits.tokenCheckMs);
      },
      async stop() {
        clearInterval(checks);
        passing.close();
      },
    },
    close: () => passing.close(),
  };
}

/** What Node gives of an upgrade beside the request. */
interface Raw {
  readonly socket: Duplex;
  readonly head: Buffer;
}

/** A client that will say who it is. */
interface Unknown {
  readonly client: WebSocket;
  readonly socket: Duplex;
  readonly asked: AskedUpgrade;
  /** It is counted by its address until then. */
  readonly leave: () => void;
}

class Passing {
  readonly #deps: PassingWebSocketsDeps;
  readonly #server: WebSocketServer;
  readonly #slots = createConnectionSlots(limits);
  /** With what ends each of them, also while it is not known yet who it is. */
  readonly #clients = new Map<WebSocket, (code: number, reason: string) => void>();
  readonly #spans: UpgradeSpans | undefined;
  readonly #passages = new Set<Passage>();
  /** Subprotocols that services have selected. */
  readonly #selected = new WeakMap<IncomingMessage, string>();
  #awakeMs = 0;
  #isClosing = false;

  constructor(deps: PassingWebSocketsDeps) {
    this.#deps = deps;
    const { tracing, route } = deps;
    this.#spans = tracing && createUpgradeSpans(tracing, ({ url = '' }) => shownRoute(route, url));
    const handleProtocols = (_offered: ReadonlySet<string>, request: IncomingMessage) =>
      this.#selected.get(request) || false;
    this.#server = new WebSocketServer({ ...SERVER, handleProtocols });
    this.#server.on('wsClientError', ({ message }, socket) =>
      refuse(socket, answerTo(new GatewayError('INVALID_REQUEST', { message }))),
    );
    const clients = this.#clients;
    void new Gauge({
      name: 'rollcall_gateway_service_websockets',
      help: 'Open WebSocket connections of clients to services.',
      registers: [deps.metrics],
      collect() {
        this.set(clients.size);
      },
    });
  }

  handle(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    // Node has removed its own listener, and a reset must not end the process.
    socket.on('error', () => socket.destroy());
    toOriginForm(request);
    this.#spans?.begin(request, socket);
    const asked = new AskedUpgrade(request, this.#spans?.of(socket), this.#deps);
    this.#upgrade(asked, { socket, head }).catch((error: unknown) => this.#refuse(error, asked, socket));
  }

  check(awakeMs: number): void {
    this.#awakeMs = awakeMs;
    for (const passage of this.#passages) passage.check(awakeMs);
  }

  close(): void {
    this.#isClosing = true;
    for (const end of this.#clients.values()) end(closeCodes.GOING_AWAY, 'this replica stops');
  }

  async #upgrade(asked: AskedUpgrade, raw: Raw): Promise<void> {
    const fault = headerFault(asked.request);
    if (fault !== undefined) throw new GatewayError('INVALID_REQUEST', { message: fault });
    this.#checkSlots();
    const decided = this.#slots.reserve();
    const granted = await grant(this.#deps, asked).finally(decided);
    this.#spans?.of(raw.socket)?.set({ 'rollcall.client': granted.holder?.caller.subject });
    if (raw.socket.destroyed) return;
    const leave = this.#enter(granted, raw.socket);
    if (!granted.showsTokenLater) return this.#acceptOpened(granted, raw);
    this.#selected.set(asked.request, GRAPHQL_PROTOCOL);
    this.#accept(asked, raw, (client) => this.#askWho({ client, socket: raw.socket, asked, leave }));
  }

  /**
   * Counts the connection until its socket closes, which it has not done yet.
   *
   * @returns what ends that before. @throws GatewayError RATE_LIMITED.
   */
  #enter(granted: Grant, socket: Duplex): () => void {
    const key = keyOf(granted);
    this.#slots.checkFor(key);
    const leave = this.#slots.acquire(key);
    socket.once('close', leave);
    return () => {
      socket.off('close', leave);
      leave();
    };
  }

  #checkSlots(): void {
    if (this.#isClosing) {
      throw new GatewayError('TOO_MANY_CONNECTIONS', { message: 'This replica stops; connect again' });
    }
    this.#slots.check();
  }

  async #acceptOpened(granted: Grant, raw: Raw): Promise<void> {
    const service = await openGranted(this.#deps, granted);
    // The client may have gone, or its handshake be none.
    const forget = () => service.terminate();
    if (raw.socket.destroyed) return forget();
    raw.socket.once('close', forget);
    this.#selected.set(granted.asked.request, service.protocol);
    this.#accept(granted.asked, raw, (client) => {
      raw.socket.off('close', forget);
      this.#pass(client, service, granted);
    });
  }

  #accept(asked: AskedUpgrade, { socket, head }: Raw, then: (client: WebSocket) => void): void {
    this.#server.handleUpgrade(asked.request, socket, head, (client) => {
      const { clock, accessLog } = this.#deps;
      const openedAtMs = clock.monotonicMs();
      this.#spans?.end(socket, 101);
      asked.record({ result: 101 });
      this.#clients.set(client, (code, reason) => client.close(code, reason));
      client.on('error', () => undefined);
      client.on('close', (code) => {
        this.#clients.delete(client);
        accessLog?.write({ ...asked.names, result: code, ms: rounded(clock.monotonicMs() - openedAtMs) });
      });
      then(client);
      if (this.#isClosing) this.#clients.get(client)?.(closeCodes.GOING_AWAY, 'this replica stops');
    });
  }

  /** Waits for who it is: a client of GraphQL says so in its first message. */
  #askWho(unknown: Unknown): void {
    const { client } = unknown;
    const late = () => client.close(closeCodes.INIT_TIMEOUT, 'connection_init did not come');
    const timer = setTimeout(late, limits.initMs);
    client.once('close', () => clearTimeout(timer));
    client.once('message', (data: Buffer, isBinary: boolean) => {
      clearTimeout(timer);
      const text = isBinary ? '' : data.toString();
      this.#identify(unknown, text).catch((error: unknown) => this.#endRefused(client, error));
    });
  }

  async #identify({ client, socket, asked, leave }: Unknown, text: string): Promise<void> {
    const early = () => client.close(closeCodes.TOO_EARLY, 'connection_init is not answered yet');
    client.on('message', early);
    const init = readConnectionInit(text);
    if (init === undefined) throw unauthenticated();
    const granted = await grant(this.#deps, asked, init.token);
    if (socket.destroyed) return;
    this.#enter(granted, socket);
    leave();
    const service = await openGranted(this.#deps, granted);
    service.send(init.rest);
    client.off('message', early);
    this.#pass(client, service, granted);
  }

  #pass(client: WebSocket, service: WebSocket, granted: Grant): void {
    const { authenticator, requestLimits, clock } = this.#deps;
    const { holder, destination, asked } = granted;
    const { socket, headers } = asked.request;
    const counted = {
      caller: holder?.caller,
      remoteAddress: socket.remoteAddress,
      forwardedFor: headers['x-forwarded-for'],
      route: destination?.rule?.limits,
    };
    const count = () => requestLimits.check(counted);
    const stillHolds = (token: string) => authenticator.stillHolds(token);
    const passage = new Passage({ client, service, holder, stillHolds, count, clock, awakeMs: this.#awakeMs });
    if (client.readyState === client.CLOSED) return;
    client.once('close', () => this.#passages.delete(passage));
    this.#passages.add(passage);
    this.#clients.set(client, (code, reason) => passage.end(code, reason));
  }

  #endRefused(client: WebSocket, error: unknown): void {
    const status = error instanceof AnsweredError ? error.status : answerTo(error).statusCode;
    if (status === 500) this.#deps.log.error({ err: error }, 'a WebSocket failed');
    if (status === 401 || status === 403)
      client.close(closeCodes.FORBIDDEN, 'the token does not hold, or not for this');
    else if (status === 429 || status === 503) client.close(closeCodes.TRY_AGAIN, 'try again later');
    else client.close(closeCodes.BAD_GATEWAY, 'the service takes no WebSocket here');
  }

  #refuse(error: unknown, asked: AskedUpgrade, socket: Duplex): void {
    if (error instanceof AnsweredError) {
      const { status: statusCode, type, body } = error;
      this.#spans?.end(socket, statusCode);
      asked.record({ result: statusCode });
      answerUpgrade(socket, { statusCode, headers: { ...asked.answerHeaders, 'content-type': type }, body });
      return;
    }
    const answer = answerTo(error);
    this.#spans?.end(socket, answer.statusCode);
    asked.record({ result: answer.statusCode, code: answer.code });
    if (answer.statusCode === 500) this.#deps.log.error({ err: error }, 'a WebSocket failed');
    refuse(socket, answer, asked.answerHeaders);
  }
}

/** The pattern that a path is reached by; undefined: it is none. */
function shownRoute(route: Route, target: string): string | undefined {
  try {
    return routePattern(route(splitTarget(target).path));
  } catch {
    return undefined;
  }
}

/** What connections are counted by. */
function keyOf({ holder, asked }: Grant): string {
  return holder?.caller.subject ?? `address ${asked.request.socket.remoteAddress}`;
}
