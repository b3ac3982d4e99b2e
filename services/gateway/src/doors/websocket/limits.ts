import type { MessageRate } from './message-rate.ts';

/** What connections may cost. */
export interface WebSocketLimits {
  /** Open ones of this process. */
  readonly connections: number;
  /** Of them, those of one subject. */
  readonly connectionsPerSubject: number;
  /** Of one connection. */
  readonly subscriptions: number;
  /**
   * Of a message from a client, whose largest has some 3 KiB; a larger one ends the connection with
   * 1009.
   */
  readonly messageBytes: number;
  /**
   * Messages, ping frames and pong frames that nobody asked for, of one client; more end the
   * connection with 1008.
   */
  readonly messageRate: MessageRate;
  /** A consumer that lets more than this pile up is closed with 1013. */
  readonly bufferBytes: number;
  /**
   * Between two pings; a peer that neither answers one within it nor reads any of what waits is cut
   * off.
   */
  readonly heartbeatMs: number;
  /** Between two checks whether tokens still hold. */
  readonly tokenCheckMs: number;
  /** How long peers have to answer the closing handshake. */
  readonly closeTimeoutMs: number;
}

export const defaultLimits: WebSocketLimits = {
  connections: 10_000,
  connectionsPerSubject: 1000,
  subscriptions: 50,
  messageBytes: 8 * 1024,
  messageRate: { perSecond: 20, burst: 40 },
  bufferBytes: 1024 * 1024,
  heartbeatMs: 20_000,
  tokenCheckMs: 500,
  closeTimeoutMs: 5000,
};
