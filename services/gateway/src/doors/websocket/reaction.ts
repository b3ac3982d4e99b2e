import { type ErrorCode, isRefusal, parseClientMessage, type ServerMessage } from './protocol.ts';

/** What counts of a connection when a message comes. */
export interface ConnectionView {
  readonly subscriptions: ReadonlyMap<string, unknown>;
  readonly maxSubscriptions: number;
  /** What its caller may do with a channel. */
  readonly access: (channel: string) => Access;
}

/**
 * A channel that there is none of, one that the caller's token lacks a scope for, or one that it
 * may have.
 */
type Access = 'unknown' | { readonly missing: string } | 'allowed';

/** What is to be done about a message. */
export type Reaction =
  | { readonly act: 'answer'; readonly answer: ServerMessage }
  | {
      /** Before the answer to it, or after. */
      readonly act: 'unsubscribe' | 'subscribe';
      readonly channel: string;
      readonly cursor: string | undefined;
      readonly answer: ServerMessage;
    };

/** Decides about a message. No I/O. */
export function reactTo(text: string, view: ConnectionView): Reaction {
  const message = parseClientMessage(text);
  if (isRefusal(message)) return refuse('INVALID_MESSAGE', message.fault, message);
  if (message.type === 'ping') return { act: 'answer', answer: { type: 'pong', ...idOf(message) } };
  const { type, channel } = message;
  const isSubscribed = view.subscriptions.has(channel);
  if (type === 'unsubscribe') {
    if (!isSubscribed) return refuse('NOT_SUBSCRIBED', 'There is no subscription to the channel', message);
    const answer = { type: 'unsubscribed', ...idOf(message), channel } as const;
    return { act: 'unsubscribe', channel, cursor: undefined, answer };
  }
  const access = view.access(channel);
  if (access === 'unknown') return refuse('UNKNOWN_CHANNEL', 'There is no such channel', message);
  if (access !== 'allowed') {
    return refuse('INSUFFICIENT_SCOPE', `The token lacks the scope ${access.missing}`, message);
  }
  if (isSubscribed) return refuse('ALREADY_SUBSCRIBED', 'The channel is subscribed to already', message);
  if (view.subscriptions.size >= view.maxSubscriptions) {
    return refuse('TOO_MANY_SUBSCRIPTIONS', `A connection has at most ${view.maxSubscriptions} subscriptions`, message);
  }
  const answer = { type: 'subscribed', ...idOf(message), channel } as const;
  return { act: 'subscribe', channel, cursor: message.payload?.cursor, answer };
}

interface Named {
  readonly id?: string | undefined;
  readonly channel?: string;
}

function idOf({ id }: Named): { id?: string } {
  return id === undefined ? {} : { id };
}

function refuse(code: ErrorCode, message: string, named: Named): Reaction {
  const channel = named.channel === undefined ? {} : { channel: named.channel };
  return { act: 'answer', answer: { type: 'error', ...idOf(named), ...channel, payload: { code, message } } };
}
