import { listQuery, Total } from '@rollcall/platform/http/lists.ts';
import { strict } from '@rollcall/platform/http/resources.ts';
import { type Static, Type } from 'typebox';
import type { MessageHistoryEntry } from '../domain/message-store.ts';
import { type Attempt, categories, channels, type Message } from '../domain/messages.ts';
import { reasons, shownReason } from '../domain/reasons.ts';
import { attemptStates, messageStates } from '../domain/states.ts';
import { TAG, TEMPLATE_NAME } from './sending.ts';

const nullable = <Schema extends Parameters<typeof Type.Union>[0][number]>(schema: Schema) =>
  Type.Union([schema, Type.Null()]);
const Timestamp = Type.String({ description: 'Date-time of RFC 3339' });

const Reason = nullable(Type.Enum(reasons, { description: 'Why it is in its state' }));
const Detail = nullable(Type.String({ description: 'Code of the provider, for its support' }));

const members = {
  id: Type.String(),
  channel: Type.Enum(channels),
  status: Type.Enum(messageStates),
  provider: nullable(Type.String({ description: 'By which it was sent last' })),
  to: Type.String(),
  cc: Type.Optional(Type.Array(Type.String(), { description: 'Of a mail' })),
  bcc: Type.Optional(Type.Array(Type.String(), { description: 'Of a mail' })),
  leftOut: Type.Optional(
    Type.Array(Type.Object({ address: Type.String(), reason: Type.Enum(reasons) }), {
      description: 'Who gets no copy, and why',
    }),
  ),
  category: Type.Enum(categories),
  template: nullable(Type.Object({ name: Type.String(), version: Type.Integer(), locale: Type.String() })),
  segments: Type.Optional(Type.Integer({ description: 'Of an SMS' })),
  encoding: Type.Optional(Type.String({ description: 'Of an SMS: GSM-7 or UCS-2' })),
  tags: Type.Array(Type.String()),
  metadata: Type.Record(Type.String(), Type.String()),
  reason: Reason,
  detail: Detail,
  sendAt: nullable(Timestamp),
  nextAttemptAt: nullable(Type.String({ description: 'Of a message that is scheduled or queued' })),
  createdAt: Timestamp,
  sentAt: nullable(Timestamp),
};

/** A message, as its sender sees it. */
export const MessageRecord = Type.Object(members);

/** One message, and what happened to it. */
export const MessageDetails = Type.Object({
  ...members,
  attempts: Type.Array(
    Type.Object({
      number: Type.Integer(),
      provider: Type.String(),
      status: Type.Enum(attemptStates),
      reason: Reason,
      detail: Detail,
      startedAt: Timestamp,
      endedAt: nullable(Timestamp),
    }),
  ),
  events: Type.Array(Type.Object({ type: Type.String(), at: Timestamp })),
});

export const MessageParams = Type.Object({ id: Type.String({ maxLength: 64 }) });

export const MessagesQuery = Type.Object(
  {
    ...listQuery,
    status: Type.Optional(Type.Enum(messageStates)),
    channel: Type.Optional(Type.Enum(channels)),
    to: Type.Optional(Type.String({ minLength: 1, maxLength: 4096, description: 'The recipient, whole' })),
    tag: Type.Optional(Type.String(TAG)),
    template: Type.Optional(Type.String(TEMPLATE_NAME)),
  },
  strict,
);

export const MessagesResponse = Type.Object({
  messages: Type.Array(MessageRecord),
  total: Total,
  limit: Type.Integer(),
  offset: Type.Integer(),
  nextCursor: nullable(Type.String({ description: 'null: there are no older ones' })),
});

export const ProvidersResponse = Type.Object({
  providers: Type.Array(
    Type.Object({
      name: Type.String(),
      kind: Type.String(),
      channel: Type.Enum(channels),
      priority: Type.Integer({ description: 'Lower ones are tried first' }),
      weight: Type.Number(),
      lastError: nullable(Type.Object({ reason: Reason, detail: Detail, at: Timestamp })),
      failingSince: nullable(Type.String({ description: 'Since when no call has been answered well' })),
      nextTryAt: nullable(Type.String({ description: 'While it is left alone' })),
      quotas: Type.Array(
        Type.Object({
          per: Type.Enum(['hour', 'day']),
          limit: Type.Integer(),
          used: Type.Integer({ description: 'By all replicas' }),
          resetsAt: Timestamp,
        }),
      ),
      status: Type.Enum(['available', 'paused', 'failing', 'used-up'], {
        description:
          'As the replica that answers sees it. `paused`: it asked to wait. `failing`: tried now and then. ' +
          '`used-up`: its quota is',
      }),
    }),
  ),
});

const WAITING: ReadonlySet<Message['state']> = new Set(['scheduled', 'queued']);

/** By REST and GraphQL alike. */
export function messageRecord(message: Message): Static<typeof MessageRecord> {
  const { id, channel, state: status, category, template, envelope, tags } = message;
  const { to, cc, bcc, leftOut, segments, encoding, metadata } = envelope;
  return {
    id,
    channel,
    status,
    provider: message.provider ?? null,
    to,
    ...(cc !== undefined && { cc: [...cc] }),
    ...(bcc !== undefined && { bcc: [...bcc] }),
    ...(leftOut !== undefined && { leftOut: [...leftOut] }),
    category,
    template: template ?? null,
    ...(segments !== undefined && { segments }),
    ...(encoding !== undefined && { encoding }),
    tags: [...tags],
    metadata,
    ...shownReason(message.reason),
    sendAt: message.sendAt?.toISOString() ?? null,
    nextAttemptAt: (WAITING.has(status) && message.dueAt?.toISOString()) || null,
    createdAt: message.createdAt.toISOString(),
    sentAt: message.sentAt?.toISOString() ?? null,
  };
}

/** See {@link MessageDetails}. */
export function messageDetails(
  message: Message,
  attempts: readonly Attempt[],
  history: readonly MessageHistoryEntry[],
): Static<typeof MessageDetails> {
  return {
    ...messageRecord(message),
    attempts: attemptRecords(attempts),
    events: eventRecords(history),
  };
}

/** By REST and GraphQL alike. */
export function attemptRecords(attempts: readonly Attempt[]): Static<typeof MessageDetails>['attempts'] {
  return attempts.map(({ number, provider, state: status, reason, startedAt, endedAt }) => ({
    number,
    provider,
    status,
    ...shownReason(reason),
    startedAt: startedAt.toISOString(),
    endedAt: endedAt?.toISOString() ?? null,
  }));
}

/** By REST and GraphQL alike. */
export function eventRecords(history: readonly MessageHistoryEntry[]): Static<typeof MessageDetails>['events'] {
  return history.map(({ type, at }) => ({ type, at: at.toISOString() }));
}
