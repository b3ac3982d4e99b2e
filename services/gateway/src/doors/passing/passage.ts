import type { Clock } from '@rollcall/platform/clock.ts';
import { createLiveness, type Liveness } from '@rollcall/platform/websocket/liveness.ts';
import type { WebSocket } from 'ws';
import type { Holder } from '../../admission/caller.ts';
import type { Verdict } from '../../admission/limits.ts';
import { createRateMeter, type RateMeter } from '../websocket/message-rate.ts';
import { closeCodes, passedCode } from './close-codes.ts';
import { hasOperations, readClientMessage, refusedOperation } from './graphql-operations.ts';
import { limits } from './limits.ts';

export interface PassageDeps {
  readonly client: WebSocket;
  readonly service: WebSocket;
  /** Undefined: nobody had to say who it is. */
  readonly holder: Holder | undefined;
  readonly stillHolds: (token: string) => boolean;
  /** Counts an operation of GraphQL as a request. */
  readonly count: () => Verdict | Promise<Verdict>;
  readonly clock: Clock;
  /** See `createAwakeClock`. */
  readonly awakeMs: number;
}

/** The messages between a client and a service. What one side does not read is not taken from the other. */
export class Passage {
  readonly #deps: PassageDeps;
  readonly #liveness: Liveness;
  readonly #rate: RateMeter = createRateMeter(limits.messageRate);
  #sentFrames = 0;
  #isEnding = false;
  /** Messages of the client, the first of which is being counted. */
  readonly #waiting: { readonly data: Buffer; readonly isBinary: boolean }[] = [];

  constructor(deps: PassageDeps) {
    this.#deps = deps;
    const { client, service } = deps;
    this.#liveness = createLiveness(limits.heartbeatMs, deps.awakeMs);
    client.on('message', (data: Buffer, isBinary: boolean) => {
      if (!this.#admit()) return;
      if (!hasOperations(service.protocol)) return forward({ data, isBinary }, client, service);
      this.#waiting.push({ data, isBinary });
      if (this.#waiting.length === 1) void this.#passInOrder();
    });
    service.on('message', (data: Buffer, isBinary: boolean) => {
      const onSent = () => {
        this.#sentFrames += 1;
      };
      forward({ data, isBinary, onSent }, service, client);
    });
    client.on('pong', (payload: Buffer) => void (this.#liveness.answered(payload) || this.#admit()));
    client.on('ping', () => void this.#admit());
    for (const socket of [client, service]) socket.on('error', () => undefined);
    client.on('close', (code, reason) => close(service, passedCode(code, closeCodes.GOING_AWAY), reason));
    service.on('close', (code, reason) => close(client, passedCode(code, closeCodes.BAD_GATEWAY), reason));
    // One may have gone while the other was waited for.
    if (client.readyState !== client.OPEN) close(service, closeCodes.GOING_AWAY);
    if (service.readyState !== service.OPEN) close(client, closeCodes.BAD_GATEWAY);
    for (const socket of [client, service]) socket.resume();
  }

  /** Checks the token and the client. To be called often. */
  check(awakeMs: number): void {
    const { client, service, holder, stillHolds, clock } = this.#deps;
    if (this.#isEnding) return;
    if (holder !== undefined) {
      const isExpired = clock.now().getTime() >= holder.caller.expiresAtMs;
      if (isExpired || !stillHolds(holder.token)) return this.end(closeCodes.FORBIDDEN, 'the token no longer holds');
    }
    const isWaiting = client.bufferedAmount > 0 || service.isPaused;
    const verdict = this.#liveness.check(awakeMs, { sentFrames: this.#sentFrames, isWaiting });
    if (verdict === 'dead') client.terminate();
    else if (verdict !== 'nothing') client.ping(verdict.ping);
  }

  end(code: number, reason: string): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    close(this.#deps.client, code, reason);
    close(this.#deps.service, closeCodes.GOING_AWAY);
  }

  /** Messages keep their order while counts are asked for elsewhere. */
  async #passInOrder(): Promise<void> {
    const { client, service } = this.#deps;
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      const { id, isOperation, data } = readClientMessage(next.data);
      const verdict = isOperation ? await this.#count() : undefined;
      this.#waiting.shift();
      if (this.#isEnding) continue;
      if (verdict?.refusal === undefined) forward({ data, isBinary: next.isBinary }, client, service);
      else client.send(refusedOperation(service.protocol, id, verdict.refusal));
    }
  }

  async #count(): Promise<Verdict> {
    const { client, service, count } = this.#deps;
    const verdict = count();
    if (!(verdict instanceof Promise)) return verdict;
    client.pause();
    const decided = await verdict;
    if (service.bufferedAmount < limits.windowBytes) client.resume();
    return decided;
  }

  #admit(): boolean {
    if (this.#isEnding) return false;
    const isAdmitted = this.#rate.admit(this.#deps.clock.monotonicMs());
    if (!isAdmitted)
      this.end(closeCodes.TOO_MANY_MESSAGES, `more than ${limits.messageRate.perSecond} messages a second`);
    return isAdmitted;
  }
}

interface Message {
  readonly data: Buffer | string;
  readonly isBinary: boolean;
  readonly onSent?: () => void;
}

function forward({ data, isBinary, onSent }: Message, from: WebSocket, to: WebSocket): void {
  to.send(data, { binary: isBinary }, () => {
    onSent?.();
    if (from.isPaused && to.bufferedAmount < limits.windowBytes) from.resume();
  });
  if (to.bufferedAmount >= limits.windowBytes) from.pause();
}

/** Who is not read would not be heard to answer. */
function close(socket: WebSocket, code: number | undefined, reason?: string | Buffer): void {
  socket.resume();
  socket.close(code, reason);
}
