/** How far a message has come. What each means is in `messageMoves`. */
export const messageStates = [
  'scheduled',
  'queued',
  'sending',
  'unknown',
  'sent',
  'delivered',
  'opened',
  'bounced',
  'complained',
  'failed',
  'cancelled',
  'suppressed',
] as const;
export type MessageState = (typeof messageStates)[number];

/** What a provider tells of a message that it took, from the weakest to the strongest. */
export const receipts = ['sent', 'delivered', 'opened', 'bounced', 'complained'] as const;
export type Receipt = (typeof receipts)[number];

/** What happens to a message. */
export type MessageEvent =
  | 'released'
  | 'begun'
  | 'accepted'
  | 'refused'
  | 'postponed'
  | 'lost'
  | 'given-up'
  | 'cancelled'
  | 'suppressed'
  | 'restarted'
  | `receipt-${Receipt}`;

/** A guarded update: from any of these states to that one, and from no other. */
interface Move<State> {
  readonly from: readonly State[];
  readonly to: State;
}

const TAKEN_OR_NOT_KNOWN: readonly MessageState[] = ['queued', 'sending', 'unknown'];
/** A receipt proves that the message was taken, whatever was thought of it before: it was tried once. */
const NOT_PROVEN: readonly MessageState[] = [...TAKEN_OR_NOT_KNOWN, 'failed', 'cancelled', 'suppressed'];

/**
 * The only ways for a message to change its state. Receipts come in any order and more than once:
 * the strongest one that came decides, so that the order does not.
 */
export const messageMoves: Readonly<Record<MessageEvent, Move<MessageState>>> = {
  /** Its time has come. */
  released: { from: ['scheduled'], to: 'queued' },
  /** An attempt is written down, before the provider is called. */
  begun: { from: ['queued'], to: 'sending' },
  /** The provider took it, by its answer or by a lookup. */
  accepted: { from: TAKEN_OR_NOT_KNOWN, to: 'sent' },
  /** No provider will ever take it. */
  refused: { from: ['sending', 'unknown'], to: 'failed' },
  /** Surely not taken, and to be tried again. */
  postponed: { from: ['sending', 'unknown'], to: 'queued' },
  /** Nobody knows whether the provider took it. */
  lost: { from: ['sending'], to: 'unknown' },
  /** Surely not taken, and tried for long enough: a dead letter. */
  'given-up': { from: ['queued', 'sending', 'unknown'], to: 'failed' },
  /** By its sender. */
  cancelled: { from: ['scheduled', 'queued'], to: 'cancelled' },
  /** The recipient wants no such message, as it turns out when it is due. */
  suppressed: { from: ['scheduled', 'queued'], to: 'suppressed' },
  /** By its sender, who knows that an unknown one may arrive twice. */
  restarted: { from: ['failed', 'unknown'], to: 'queued' },
  'receipt-sent': { from: NOT_PROVEN, to: 'sent' },
  'receipt-delivered': { from: [...NOT_PROVEN, 'sent'], to: 'delivered' },
  'receipt-opened': { from: [...NOT_PROVEN, 'sent', 'delivered'], to: 'opened' },
  /** Mail systems may return what they had taken; carriers report a phone that they never reached. */
  'receipt-bounced': { from: [...NOT_PROVEN, 'sent', 'delivered', 'opened'], to: 'bounced' },
  'receipt-complained': {
    from: [...NOT_PROVEN, 'sent', 'delivered', 'opened', 'bounced'],
    to: 'complained',
  },
};

/** @returns the state after the event; undefined: it changes nothing, as it comes late or again. */
export function nextMessageState(state: MessageState, event: MessageEvent): MessageState | undefined {
  return next(messageMoves[event], state);
}

interface Acceptance {
  /** Whether the recipient wants no such message. */
  readonly isSuppressed: boolean;
  readonly sendAt: Date | undefined;
  readonly now: Date;
}

/** The state in which a message is accepted. */
export function firstMessageState({ isSuppressed, sendAt, now }: Acceptance): MessageState {
  if (isSuppressed) return 'suppressed';
  return sendAt !== undefined && sendAt.getTime() > now.getTime() ? 'scheduled' : 'queued';
}

/**
 * What became of one call of a provider. `begun`: not known yet, or never where its replica died;
 * `failed`: surely not taken, another one may be; `refused`: another one would be, too.
 */
export const attemptStates = ['begun', 'accepted', 'refused', 'failed', 'unknown'] as const;
export type AttemptState = (typeof attemptStates)[number];

/** How an attempt ends, by the provider's answer, by a lookup, or by a receipt. */
export type AttemptEvent = Exclude<AttemptState, 'begun'> | 'receipt';

/** The only ways for an attempt to change its state. */
export const attemptMoves: Readonly<Record<AttemptEvent, Move<AttemptState>>> = {
  accepted: { from: ['begun', 'unknown'], to: 'accepted' },
  refused: { from: ['begun', 'unknown'], to: 'refused' },
  failed: { from: ['begun', 'unknown'], to: 'failed' },
  unknown: { from: ['begun'], to: 'unknown' },
  receipt: { from: ['begun', 'unknown', 'failed', 'refused'], to: 'accepted' },
};

/** @returns the state after the event; undefined: it changes nothing. */
export function nextAttemptState(state: AttemptState, event: AttemptEvent): AttemptState | undefined {
  return next(attemptMoves[event], state);
}

function next<State>({ from, to }: Move<State>, state: State): State | undefined {
  return from.includes(state) ? to : undefined;
}
