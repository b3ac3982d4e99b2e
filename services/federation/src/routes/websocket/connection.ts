import type { IncomingHttpHeaders } from 'node:http';
import { type Clock } from '@rollcall/platform/clock.ts';
import type { ReadCaller } from '@rollcall/platform/http/callers.ts';
import { identityHeaders } from '@rollcall/platform/http/identity.ts';
import { createLiveness, type Liveness } from '@rollcall/platform/websocket/liveness.ts';
import type { WebSocket } from 'ws';
import { federationError } from '../../errors.ts';
import type { CallContext } from '../../subgraphs/call-subgraph.ts';
import type { PassedHeaders } from '../../subgraphs/headers/passed-headers.ts';
import { shownCaller } from '../../subgraphs/identities.ts';
import type { BeginOperation } from '../../subscriptions/operations.ts';
import { clientNameOf } from '../graphql-over-http.ts';
import { type Asked, askedByPost } from '../graphql-requests.ts';
import {
  authorizationIn,
  type ClientMessage,
  closeCodes,
  endMessage,
  fieldsIn,
  nextMessage,
  readMessage,
} from './messages.ts';
import { type AllWaiting, Outbox } from './outbox.ts';

type Subscribe = ClientMessage & { readonly type: 'subscribe' };

export interface ConnectionDeps {
  readonly socket: WebSocket;
  /** Of the upgrade. */
  readonly headers: IncomingHttpHeaders;
  /** What shows a part of the graph; undefined: all of it. */
  readonly contract: string | undefined;
  readonly readCaller: ReadCaller;
  readonly carried: PassedHeaders['carried'];
  readonly begin: BeginOperation;
  readonly clock: Clock;
  readonly allWaiting: AllWaiting;
  /** See `createAwakeClock`. */
  readonly awakeMs: number;
}

/** For `connection_init`. */
const INIT_MS = 10_000;
const MOST_OPERATIONS = 100;
const HEARTBEAT_MS = 20_000;

/** One client on a WebSocket, with its operations. */
export class Connection {
  readonly #deps: ConnectionDeps;
  readonly #liveness: Liveness;
  readonly #outbox: Outbox;
  /** What says of each that nobody listens any more. */
  readonly #operations = new Map<string, () => void>();
  readonly #initTimer: NodeJS.Timeout;
  #state: 'opened' | 'identifying' | 'over' | CallContext = 'opened';

  constructor(deps: ConnectionDeps) {
    this.#deps = deps;
    const { socket } = deps;
    this.#liveness = createLiveness(HEARTBEAT_MS, deps.awakeMs);
    this.#outbox = new Outbox(socket, deps.allWaiting, deps.awakeMs);
    this.#initTimer = setTimeout(() => this.#end(closeCodes.INIT_TIMEOUT, 'connection_init did not come'), INIT_MS);
    socket.on('message', (data: Buffer, isBinary: boolean) => this.#receive(isBinary ? undefined : data.toString()));
    socket.on('pong', (payload: Buffer) => this.#liveness.answered(payload));
    // Errors of the protocol close the connection with their code; `close` follows.
    socket.on('error', () => undefined);
    socket.on('close', () => this.#release());
  }

  /** Whether who calls still counts, and whether somebody is there. To be called often. */
  check(awakeMs: number): void {
    const { socket, clock } = this.#deps;
    const expiresAtMs = typeof this.#state === 'object' ? this.#state.caller?.expiresAtMs : undefined;
    if (expiresAtMs !== undefined && clock.now().getTime() >= expiresAtMs)
      return this.#end(closeCodes.FORBIDDEN, 'the token has expired');
    if (this.#outbox.isStuck(awakeMs)) return this.#end(closeCodes.TOO_SLOW, 'what waits is not read');
    const verdict = this.#liveness.check(awakeMs, {
      sentFrames: this.#outbox.sentFrames,
      isWaiting: socket.bufferedAmount > 0,
    });
    if (verdict === 'dead') socket.terminate();
    else if (verdict !== 'nothing' && this.#state !== 'over') socket.ping(verdict.ping);
  }

  /** Sends the client elsewhere. */
  leave(): void {
    this.#end(closeCodes.GOING_AWAY, 'this replica stops');
  }

  #receive(text: string | undefined): void {
    if (this.#state === 'over') return;
    const message = text === undefined ? undefined : readMessage(text);
    if (message === undefined) return this.#end(closeCodes.BAD_MESSAGE, 'the message is not valid');
    switch (message.type) {
      case 'connection_init':
        if (this.#state !== 'opened') return this.#end(closeCodes.INIT_TWICE, 'connection_init came already');
        this.#state = 'identifying';
        void this.#identify(message);
        return;
      case 'subscribe':
        if (typeof this.#state !== 'object') return this.#end(closeCodes.NOT_ACKNOWLEDGED, 'connection_init is first');
        return this.#subscribe(message, this.#state);
      case 'complete':
        this.#operations.get(message.id)?.();
        this.#operations.delete(message.id);
        return;
      case 'ping':
        return this.#send('{"type":"pong"}');
      case 'pong':
    }
  }

  /** What the upgrade shows counts; where that is nothing, what the client says now. */
  async #identify(message: ClientMessage & { readonly type: 'connection_init' }): Promise<void> {
    const { headers, readCaller } = this.#deps;
    const showsNothing = headers.authorization === undefined && headers[identityHeaders.token] === undefined;
    const authorization = authorizationIn(message);
    const shown = showsNothing && authorization !== undefined ? { ...headers, authorization } : headers;
    try {
      const caller = await readCaller({ headers: shown });
      if (this.#state !== 'identifying') return;
      if (caller === undefined && authorization !== undefined)
        return this.#end(closeCodes.FORBIDDEN, 'the credentials do not hold');
      const carried = this.#deps.carried({ ...fieldsIn(message), ...headers });
      this.#state = { headers: carried, caller: shownCaller(shown, caller) };
      clearTimeout(this.#initTimer);
      this.#send('{"type":"connection_ack"}');
    } catch {
      this.#end(closeCodes.FORBIDDEN, 'the credentials do not hold');
    }
  }

  #subscribe({ id, payload }: Subscribe, context: CallContext): void {
    if (this.#operations.has(id)) return this.#end(closeCodes.ID_TAKEN, 'an operation with this id is under way');
    if (this.#operations.size >= MOST_OPERATIONS) {
      const { code, message } = federationError('TOO_MANY_SUBSCRIPTIONS');
      return this.#send(endMessage(id, [{ message, extensions: { code } }]));
    }
    const asked = askedIn(payload);
    if (asked === undefined) return this.#end(closeCodes.BAD_MESSAGE, 'the operation has no document');
    let hasAnswered = false;
    const leave = this.#deps.begin(
      { ...asked, contract: this.#deps.contract, client: clientNameOf(this.#deps.headers) },
      {
        context,
        next: (answer) => {
          if (this.#operations.get(id) !== leave) return;
          hasAnswered = true;
          this.#send(nextMessage(id, answer));
        },
        end: (errors) => {
          if (this.#operations.get(id) !== leave) return;
          this.#operations.delete(id);
          // A large answer waits itself: it is bounded by the check before it.
          if (hasAnswered) this.#write(endMessage(id, errors));
          else this.#send(endMessage(id, errors));
        },
      },
    );
    this.#operations.set(id, leave);
  }

  #send(text: string): void {
    if (this.#outbox.isFull) return this.#end(closeCodes.TOO_SLOW, 'too much waits to be read');
    this.#write(text);
  }

  #write(text: string): void {
    if (this.#state === 'over') return;
    this.#outbox.send(text);
  }

  #end(code: number, reason: string): void {
    if (this.#state === 'over') return;
    this.#release();
    this.#deps.socket.close(code, reason);
  }

  #release(): void {
    this.#state = 'over';
    clearTimeout(this.#initTimer);
    for (const leave of this.#operations.values()) leave();
    this.#operations.clear();
  }
}

/** Undefined where there is no document. */
function askedIn(payload: Subscribe['payload']): Asked | undefined {
  try {
    return askedByPost(payload);
  } catch {
    return undefined;
  }
}
