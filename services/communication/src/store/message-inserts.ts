import { bytesIn, createSharedStatement } from '@rollcall/platform/postgres/shared-statement.ts';
import type { MessageStore } from '../domain/message-store.ts';
import type { Channel, NewMessage } from '../domain/messages.ts';
import { foldedRecipient } from '../domain/recipients.ts';
import { stateEvent } from './message-changes.ts';
import { createMessageRows, type MessageTableDeps } from './message-rows.ts';

/** With its event and tags. Of a message that is alone the content is apart: it may be large. */
const INSERT = `
  WITH asked AS MATERIALIZED (
    SELECT * FROM json_to_recordset($1) AS row (id uuid, subject text, channel text, state text, category text,
      template text, template_version integer, locale text, tags text[], recipient bytea, envelope bytea, content bytea,
      send_at timestamptz, expires_at timestamptz, created_at timestamptz, reason text,
      event_id uuid, event_type text, event_data bytea)),
  message AS (
    INSERT INTO messages (id, subject, channel, state, category, template, template_version, locale, tags, recipient,
      envelope, content, send_at, expires_at, created_at, reason,
      due_at)
    SELECT id, subject, channel, state, category, template, template_version, locale, tags, recipient,
      envelope, coalesce($2, content), send_at, expires_at, created_at, reason,
      CASE WHEN state = 'suppressed' THEN NULL ELSE coalesce(send_at, now()) END
    FROM asked ON CONFLICT (id) DO NOTHING RETURNING id, subject, tags, created_at),
  tagged AS (
    INSERT INTO message_tags (subject, tag, created_at, id)
    SELECT subject, unnest(tags), created_at, id FROM message),
  told AS (
    INSERT INTO events (id, subject, type, resource_id, data)
    SELECT event_id, asked.subject, event_type, asked.id, event_data FROM asked JOIN message USING (id))
  SELECT id FROM message`;

interface Insert extends Pick<NewMessage, 'expiresAt'> {
  readonly message: Omit<NewMessage, 'content' | 'expiresAt'>;
  readonly channel: Channel;
  readonly content: Buffer;
}

/** Stores messages: those that come at the same time by one statement. */
export function insertsMessage(deps: MessageTableDeps): MessageStore['insert'] {
  const { pool, vault, recipients, recordEvents } = deps;
  const rows = createMessageRows(vault);
  const insert = createSharedStatement<Insert, boolean>({
    async run(inserts) {
      const [first, second] = inserts;
      const alone = second === undefined ? first?.content : undefined;
      const asked = inserts.map((each) => ({
        ...rowOf(each),
        content: alone === undefined ? bytesIn(each.content) : null,
      }));
      const values = [JSON.stringify(asked), alone];
      const { rows: inserted } = await pool().query<{ id: string }>({ name: 'insert-messages', text: INSERT, values });
      const ids = new Set(inserted.map(({ id }) => id));
      return inserts.map(({ message }) => ids.has(message.id));
    },
    rowOf: ({ message }) => message.id,
    bytesOf: ({ content }) => content.length,
  });

  /** Of {@link INSERT}. */
  function rowOf({ message, channel, expiresAt }: Insert) {
    const { id, envelope, template, reason = null } = message;
    const told = stateEvent({ ...message, channel, provider: null, reason, sentAt: null });
    const [eventId, , eventType, , eventData] = recordEvents.valuesOf(told);
    return {
      id,
      channel,
      reason,
      subject: message.subject,
      state: message.state,
      category: message.category,
      template: template?.name,
      template_version: template?.version,
      locale: template?.locale,
      tags: message.tags,
      recipient: bytesIn(recipients.of(foldedRecipient(envelope.to))),
      envelope: bytesIn(rows.sealEnvelope(id, envelope)),
      send_at: message.sendAt,
      expires_at: expiresAt,
      created_at: message.createdAt,
      event_id: eventId,
      event_type: eventType,
      event_data: bytesIn(eventData),
    };
  }

  return async ({ content, expiresAt, ...message }) => {
    const { id, state, sendAt, createdAt } = message;
    const { channel } = content;
    if (!(await insert({ message, channel, expiresAt, content: rows.sealContent(id, content) }))) return undefined;
    const dueAt = state === 'suppressed' ? undefined : (sendAt ?? createdAt);
    return { ...message, channel, provider: undefined, sentAt: undefined, dueAt };
  };
}
