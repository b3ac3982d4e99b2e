import type { RecordEvents } from '@rollcall/platform/events/events.ts';
import type { PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { MessageChange } from '../domain/message-store.ts';
import type { Message } from '../domain/messages.ts';
import { shownReason } from '../domain/reasons.ts';
import { type MessageEvent, messageMoves } from '../domain/states.ts';
import { MESSAGE_COLUMNS, type MessageRow, templateOf } from './message-rows.ts';

export interface GuardedChange extends MessageChange {
  readonly id: string;
  /** Only where this is the number of its last call. */
  readonly attempt?: number;
}

/** Events by which a message is known to be sent. */
export const IS_SENT: ReadonlySet<MessageEvent> = new Set([
  'accepted',
  'receipt-sent',
  'receipt-delivered',
  'receipt-opened',
  'receipt-bounced',
  'receipt-complained',
]);

/**
 * Makes a move of the table of states, and records its event.
 *
 * @returns whether the message was in a state that allows it.
 */
export async function changeMessage(
  client: PoolClient,
  recordEvents: RecordEvents,
  change: GuardedChange,
): Promise<boolean> {
  const { id, event, dueInMs, reason, provider, tried, pauses, repeats, attempt } = change;
  const { from, to } = messageMoves[event];
  // Its sender may have put it off since it was taken.
  const isOfItsTime = event === 'released';
  const { rows } = await client.query<MessageRow>(
    `UPDATE messages SET state = $2, reason = $3,
       due_at = now() + make_interval(secs => $4::double precision / 1000),
       provider = coalesce($5, provider), tried = coalesce($6, tried),
       pauses = coalesce($7, pauses), repeats = coalesce($8, repeats),
       sent_at = CASE WHEN $9 THEN coalesce(sent_at, now()) ELSE sent_at END
     WHERE id = $1 AND state = ANY($10) AND ($11::int IS NULL OR attempts = $11)
       AND (NOT $12 OR send_at <= now())
     RETURNING ${MESSAGE_COLUMNS}`,
    [id, to, reason, dueInMs, provider, tried, pauses, repeats, IS_SENT.has(event), from, attempt, isOfItsTime],
  );
  const [row] = rows;
  if (row === undefined) return false;
  await recordState(client, recordEvents, row);
  return true;
}

/** Says that a message is in its state. */
export async function recordState(client: PoolClient, recordEvents: RecordEvents, row: MessageRow): Promise<void> {
  const { created_at: createdAt, sent_at: sentAt } = row;
  await recordEvents(client, [stateEvent({ ...row, template: templateOf(row), createdAt, sentAt })]);
}

type Stated = Pick<MessageRow, 'id' | 'subject' | 'channel' | 'state' | 'category' | 'provider' | 'reason' | 'tags'> &
  Pick<Message, 'template' | 'createdAt'> & { readonly sentAt: Date | null };

/** Pure. Receivers keep what they get, so nobody is named. */
export function stateEvent(message: Stated) {
  const { id, subject, channel, state: status, category, template, provider, reason, tags } = message;
  return {
    subject,
    type: `message.${status}`,
    resourceId: id,
    data: {
      id,
      channel,
      status,
      provider,
      category,
      template: template === undefined ? null : { name: template.name, version: template.version },
      tags,
      reason: shownReason(reason).reason,
      createdAt: message.createdAt.toISOString(),
      sentAt: message.sentAt?.toISOString() ?? null,
    },
  };
}
