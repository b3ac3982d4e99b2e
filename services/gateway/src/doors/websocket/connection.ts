import type { Clock } from '@rollcall/platform/clock.ts';
import { createLiveness } from '@rollcall/platform/websocket/liveness.ts';
import type { WebSocket } from 'ws';
import type { Caller } from '../../admission/caller.ts';
import type { ChannelSource } from './channels/channel-source.ts';
import type { WebSocketLimits } from './limits.ts';
import { createRateMeter } from './message-rate.ts';
import type { Stats } from './metrics.ts';
import { closeCodes, encode, type ServerMessage, SUBPROTOCOL } from './protocol.ts';
import { reactTo } from './reaction.ts';
import { createSender } from './sender.ts';
import { createSubscriptions } from './subscriptions.ts';

export interface ConnectionDeps {
  readonly socket: WebSocket;
  readonly caller: Caller;
  /** Whether the caller's token does. */
  readonly stillHolds: () => boolean;
  readonly sources: readonly ChannelSource[];
  readonly limits: WebSocketLimits;
  readonly stats: Stats;
  readonly clock: Clock;
  /** See {@link createAwakeClock}. */
  readonly awakeMs: number;
}

/** One open connection. It ends itself for what its client does; the rest comes from here. */
export interface Connection {
  /** Checks the token and the peer. To be called often. */
  check(awakeMs: number): void;
  /** Sends the client elsewhere. */
  sayGoodbye(retryAfterMs: number): void;
  /** Ends it without a word. */
  terminate(): void;
  /** So far. */
  readonly eventsSent: number;
}

export function createConnection(deps: ConnectionDeps): Connection {
  const { socket, caller, sources, limits, stats, clock } = deps;
  const liveness = createLiveness(limits.heartbeatMs, deps.awakeMs);
  const rate = createRateMeter(limits.messageRate);
  const sender = createSender({ socket, limitBytes: limits.bufferBytes, onTooSlow });
  const subscriptions = createSubscriptions({ caller, sources, sender, stats });
  let isEnding = false;

  function release(): void {
    isEnding = true;
    sender.stop();
    subscriptions.clear();
  }

  function end(code: number, reason: string): void {
    if (isEnding) return;
    release();
    stats.closed.inc({ code });
    socket.close(code, reason);
  }

  function onTooSlow(): void {
    stats.slowConsumers.inc();
    end(closeCodes.TOO_SLOW, `more than ${limits.bufferBytes} bytes wait to be read`);
  }

  function receive(text: string): void {
    const view = { subscriptions: subscriptions.active, maxSubscriptions: limits.subscriptions };
    const reaction = reactTo(text, { ...view, access: subscriptions.access });
    if (reaction.act === 'unsubscribe') subscriptions.remove(reaction.channel);
    sender.send(encode(reaction.answer));
    if (reaction.act === 'subscribe') subscriptions.add(reaction.channel, reaction.cursor);
  }

  /** @returns whether the client keeps to its rate. */
  function admit(): boolean {
    if (isEnding) return false;
    const isAdmitted = rate.admit(clock.monotonicMs());
    if (!isAdmitted) end(closeCodes.TOO_MANY_MESSAGES, `more than ${limits.messageRate.perSecond} messages a second`);
    return isAdmitted;
  }

  socket.on('message', (data: Buffer, isBinary: boolean) => {
    if (!admit()) return;
    if (isBinary) end(closeCodes.NOT_TEXT, 'messages are JSON text');
    else receive(data.toString());
  });
  socket.on('ping', () => void admit());
  socket.on('pong', (payload: Buffer) => void (liveness.answered(payload) || admit()));
  // The protocol's own errors close the connection with their code; `close` follows.
  socket.on('error', () => undefined);
  socket.on('close', release);
  sender.send(encode(welcome(deps)));

  return {
    check(awakeMs) {
      if (isEnding) return;
      if (clock.now().getTime() >= caller.expiresAtMs) return end(closeCodes.TOKEN_ENDED, 'the token has expired');
      if (!deps.stillHolds()) return end(closeCodes.TOKEN_ENDED, 'the token no longer holds');
      const verdict = liveness.check(awakeMs, sender.intake());
      if (verdict === 'dead') socket.terminate();
      else if (verdict !== 'nothing') socket.ping(verdict.ping);
    },
    sayGoodbye(retry_after_ms) {
      if (isEnding) return;
      const goodbye = { type: 'goodbye', payload: { reason: 'this replica stops', retry_after_ms } } as const;
      // What waits need not be sent before it: the client goes on elsewhere from its cursor.
      socket.send(encode(goodbye), { binary: false });
      end(closeCodes.GOING_AWAY, goodbye.payload.reason);
    },
    terminate: () => socket.terminate(),
    get eventsSent() {
      return subscriptions.eventsSent;
    },
  };
}

function welcome({ caller, limits }: ConnectionDeps): ServerMessage {
  return {
    type: 'welcome',
    payload: {
      protocol: SUBPROTOCOL,
      subject: caller.subject,
      expires_at: new Date(caller.expiresAtMs).toISOString(),
      heartbeat_seconds: limits.heartbeatMs / 1000,
      max_message_bytes: limits.messageBytes,
      max_subscriptions: limits.subscriptions,
    },
  };
}
