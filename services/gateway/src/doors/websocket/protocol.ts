import { type Static, type TSchema, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import type { Frame } from './channels/channel-source.ts';

/** The subprotocol that browsers have to name, because they cannot send a token otherwise. */
export const SUBPROTOCOL = 'rollcall.v1';

/** What `/api/ws` ends a connection with, beside other codes of RFC 6455. */
export const closeCodes = {
  GOING_AWAY: 1001,
  NOT_TEXT: 1003,
  TOO_MANY_MESSAGES: 1008,
  /** The WebSocket library's, as 1008 for a message in too many pieces. */
  TOO_LONG: 1009,
  INTERNAL: 1011,
  TOO_SLOW: 1013,
  TOKEN_ENDED: 4401,
} as const;

const CHANNEL_MAX_LENGTH = 300;

const Id = Type.String({
  maxLength: 128,
  description: 'Chosen by the client; the answer to the message has the same',
});
const Channel = Type.String({ minLength: 1, maxLength: CHANNEL_MAX_LENGTH });
const Cursor = Type.String({
  maxLength: 64,
  description: 'The id of the last event of the channel that was received since the last reset',
});

/**
 * What is unknown is a mistake, as a cursor in the wrong place would be: it is refused, not
 * ignored.
 */
const strict = { additionalProperties: false } as const;

const Subscribe = Type.Object(
  {
    type: Type.Literal('subscribe'),
    id: Type.Optional(Id),
    channel: Channel,
    payload: Type.Optional(Type.Object({ cursor: Type.Optional(Cursor) }, strict)),
  },
  strict,
);

const Unsubscribe = Type.Object({ type: Type.Literal('unsubscribe'), id: Type.Optional(Id), channel: Channel }, strict);

const Ping = Type.Object({ type: Type.Literal('ping'), id: Type.Optional(Id) }, strict);

const Welcome = Type.Object({
  type: Type.Literal('welcome'),
  payload: Type.Object({
    protocol: Type.Literal(SUBPROTOCOL),
    subject: Type.String(),
    expires_at: Type.String({ format: 'date-time', description: 'When the token ends, and with it the connection' }),
    heartbeat_seconds: Type.Number({
      description:
        'A ping frame comes so often; a peer that neither answers it within as long, nor reads any of what waits for it, is cut off. ' +
        'Nothing else that it sends keeps it alive',
    }),
    max_message_bytes: Type.Integer(),
    max_subscriptions: Type.Integer(),
  }),
});

const Subscribed = Type.Object({
  type: Type.Literal('subscribed'),
  id: Type.Optional(Id),
  channel: Channel,
});

const Unsubscribed = Type.Object({ type: Type.Literal('unsubscribed'), id: Type.Optional(Id), channel: Channel });

const Event = Type.Object({
  type: Type.Literal('event'),
  channel: Channel,
  id: Type.Optional(
    Type.String({
      description:
        'The cursor to resume after this event; absent within the list that a subscription begins with: until its `synced` there is ' +
        'nothing to resume from, and a cursor from before a reset is no good. The events that were missed have one each',
    }),
  ),
  payload: Type.Object({
    type: Type.String({
      description: 'What happened; `synced`: everything that there was to catch up with has been sent',
    }),
  }),
});

const Reset = Type.Object({
  type: Type.Literal('reset'),
  channel: Channel,
});

const ErrorMessage = Type.Object({
  type: Type.Literal('error'),
  id: Type.Optional(Id),
  channel: Type.Optional(Channel),
  payload: Type.Object({
    code: Type.Enum([
      'INVALID_MESSAGE',
      'UNKNOWN_CHANNEL',
      'INSUFFICIENT_SCOPE',
      'ALREADY_SUBSCRIBED',
      'NOT_SUBSCRIBED',
      'TOO_MANY_SUBSCRIPTIONS',
    ]),
    message: Type.String({ description: 'For people' }),
  }),
});

const Pong = Type.Object({ type: Type.Literal('pong'), id: Type.Optional(Id) });

const Goodbye = Type.Object({
  type: Type.Literal('goodbye'),
  payload: Type.Object({
    reason: Type.String(),
    retry_after_ms: Type.Integer({ description: 'Connect again after this long; it differs from client to client' }),
  }),
});

/** A kind of message, as it is checked and as it is described. */
export interface MessageKind {
  readonly summary: string;
  readonly schema: TSchema;
}

/** By their `type`. */
export const clientMessages = {
  subscribe: { summary: 'Follow a channel, from now or from where an earlier connection ended', schema: Subscribe },
  unsubscribe: { summary: 'End a subscription', schema: Unsubscribe },
  ping: { summary: 'Ask for a pong; browsers cannot send ping frames', schema: Ping },
} as const satisfies Record<string, MessageKind>;

/** By their `type`. */
export const serverMessages = {
  welcome: { summary: 'The first message', schema: Welcome },
  subscribed: { summary: 'The subscription is made; reset or events follow', schema: Subscribed },
  unsubscribed: { summary: 'No event of the channel follows', schema: Unsubscribed },
  event: { summary: 'Something happened in a channel', schema: Event },
  reset: {
    summary:
      'The cursor is too old, or not of this channel: everything there is follows. What was known before counts no more, the cursor ' +
      'included: drop it, and have none until the event synced gives you one',
    schema: Reset,
  },
  error: { summary: 'A message was refused; the connection goes on', schema: ErrorMessage },
  pong: { summary: 'The answer to a ping message', schema: Pong },
  goodbye: { summary: 'This replica stops: connect again. The connection is closed with 1001', schema: Goodbye },
} as const satisfies Record<string, MessageKind>;

const ClientMessage = Type.Union([Subscribe, Unsubscribe, Ping]);
export type ClientMessage = Static<typeof ClientMessage>;

const ServerMessage = Type.Union([Welcome, Subscribed, Unsubscribed, Event, Reset, ErrorMessage, Pong, Goodbye]);
export type ServerMessage = Static<typeof ServerMessage>;
export type ErrorCode = Static<typeof ErrorMessage>['payload']['code'];

const clientMessageCheck = Compile(ClientMessage);
const kindChecks = new Map(Object.entries(clientMessages).map(([type, { schema }]) => [type, Compile(schema)]));

/** What is wrong with a message, for whoever sent it. */
export interface Refusal {
  readonly fault: string;
  /** Of the message, where it could be read. */
  readonly id: string | undefined;
}

/** Reads what a client sent. */
export function parseClientMessage(text: string): ClientMessage | Refusal {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { fault: 'The message is no JSON', id: undefined };
  }
  if (clientMessageCheck.Check(value)) return value;
  return { fault: faultOf(value), id: idOf(value) };
}

export function isRefusal(message: ClientMessage | Refusal): message is Refusal {
  return 'fault' in message;
}

function faultOf(value: unknown): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'The message is no JSON object';
  const type: unknown = 'type' in value ? value.type : undefined;
  const check = typeof type === 'string' ? kindChecks.get(type) : undefined;
  if (check === undefined) return `type must be one of ${[...kindChecks.keys()].join(', ')}`;
  const [error] = check.Errors(value);
  const at = error?.instancePath === '' ? 'The message' : error?.instancePath.slice(1).replaceAll('/', '.');
  return `${at} ${error?.message}`;
}

function idOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || !('id' in value)) return undefined;
  return typeof value.id === 'string' && value.id.length <= 128 ? value.id : undefined;
}

export function encode(message: ServerMessage): Frame {
  return Buffer.from(JSON.stringify(message));
}

export interface EventParts {
  readonly channel: string;
  readonly cursor: string | undefined;
  /** Its `type` says what happened. */
  readonly payload: object;
}

export function encodeEvent({ channel, cursor, payload }: EventParts): Frame {
  return Buffer.from(JSON.stringify({ type: 'event', channel, id: cursor, payload }));
}
