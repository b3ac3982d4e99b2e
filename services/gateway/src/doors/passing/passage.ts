import type { Clock } from '@rollcall/platform/clock.ts';
import { createLiveness, type Liveness } from '@rollcall/platform/websocket/liveness.ts';
import type { WebSocket } from 'ws';
import type { Holder } from '../../admission/caller.ts';
import { createRateMeter, type RateMeter } from '../websocket/message-rate.ts';
import { closeCodes, passedCode } from './close-codes.ts';
import { limits } from './limits.ts';

export interface PassageDeps {
  readonly client: WebSocket;
  readonly service: WebSocket;
  /** Undefined: nobody had to say who it is. */
  readonly holder: Holder | undefined;
  readonly stillHolds: (token: string) => boolean;
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

  constructor(deps: PassageDeps) {
    this.#deps = deps;
    const { client, service } = deps;
    this.#liveness = createLiveness(limits.heartbeatMs, deps.awakeMs);
    client.on('message', (data: Buffer, isBinary: boolean) => {
      if (this.#admit()) forward({ data, isBinary }, client, service);
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

  #admit(): boolean {
    if (this.#isEnding) return false;
    const isAdmitted = this.#rate.admit(this.#deps.clock.monotonicMs());
    if (!isAdmitted)
      this.end(closeCodes.TOO_MANY_MESSAGES, `more than ${limits.messageRate.perSecond} messages a second`);
    return isAdmitted;
  }
}

interface Message {
  readonly data: Buffer;
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
