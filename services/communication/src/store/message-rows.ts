import type { RecordEvents } from '@rollcall/platform/events/events.ts';
import type { Pool } from '@rollcall/platform/postgres/pool.ts';
import type { BlindIndex, Vault } from '@rollcall/platform/vault.ts';
import type { Category, Channel, Envelope, Message, MessageContent } from '../domain/messages.ts';
import type { MessageState } from '../domain/states.ts';

export interface MessageTableDeps {
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
  readonly vault: Vault;
  /** Of recipients. */
  readonly recipients: BlindIndex;
  readonly recordEvents: RecordEvents;
}

/** Of a {@link MessageRow}. */
export const MESSAGE_COLUMNS = `id, subject, channel, state, category, template, template_version, locale, tags, envelope, provider,
  reason, send_at, sent_at, created_at, due_at`;

export interface MessageRow {
  readonly id: string;
  readonly subject: string;
  readonly channel: Channel;
  readonly state: MessageState;
  readonly category: Category;
  readonly template: string | null;
  readonly template_version: number | null;
  readonly locale: string | null;
  readonly tags: readonly string[];
  readonly envelope: Buffer;
  readonly provider: string | null;
  readonly reason: string | null;
  readonly send_at: Date | null;
  readonly sent_at: Date | null;
  readonly created_at: Date;
  readonly due_at: Date | null;
}

/** What rows hold sealed, and messages in clear. */
export interface MessageRows {
  messageOf(row: MessageRow): Message;
  sealEnvelope(id: string, envelope: Envelope): Buffer;
  openEnvelope(id: string, sealed: Buffer): Envelope;
  sealContent(id: string, content: MessageContent): Buffer;
  openContent(id: string, sealed: Buffer): MessageContent;
}

export function createMessageRows(vault: Vault): MessageRows {
  function openEnvelope(id: string, sealed: Buffer): Envelope {
    const envelope: Envelope = JSON.parse(vault.open(sealed, envelopeContext(id)).toString());
    return envelope;
  }

  return {
    openEnvelope,
    sealEnvelope: (id, envelope) => vault.seal(JSON.stringify(envelope), envelopeContext(id)),
    sealContent: (id, content) => vault.seal(JSON.stringify(content), contentContext(id)),
    openContent(id, sealed) {
      const content: MessageContent = JSON.parse(vault.open(sealed, contentContext(id)).toString());
      return content;
    },
    messageOf: (row) => ({
      id: row.id,
      subject: row.subject,
      channel: row.channel,
      state: row.state,
      category: row.category,
      template: templateOf(row),
      tags: row.tags,
      envelope: openEnvelope(row.id, row.envelope),
      provider: row.provider ?? undefined,
      reason: row.reason ?? undefined,
      sendAt: row.send_at ?? undefined,
      createdAt: row.created_at,
      sentAt: row.sent_at ?? undefined,
      dueAt: row.due_at ?? undefined,
    }),
  };
}

/** What the envelope of a message is sealed for. */
export function envelopeContext(id: string): string {
  return `message envelope ${id}`;
}

/** What the content of a message is sealed for. */
export function contentContext(id: string): string {
  return `message ${id}`;
}

/** The template that a row names. */
export function templateOf({
  template: name,
  template_version: version,
  locale,
}: Pick<MessageRow, 'template' | 'template_version' | 'locale'>): Message['template'] {
  return name === null || version === null || locale === null ? undefined : { name, version, locale };
}
