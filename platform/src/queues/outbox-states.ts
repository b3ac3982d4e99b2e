/** Waiting or under way, accepted by its receiver, or given up: a dead letter. */
export const outboxStates = ['pending', 'delivered', 'dead'] as const;

/** How far a message has come that is to be sent at least once. */
export type OutboxState = (typeof outboxStates)[number];

/** What became of one attempt to send a message. */
export interface OutboxAttempt {
  /** `refused`: another attempt would be, too. */
  readonly result: 'delivered' | 'failed' | 'refused';
  /** Without URLs and secrets: it is stored and logged. */
  readonly reason: string;
}
