import { type Mailbox, type OutgoingMessage, type OutgoingPush, type Suppression } from './ports.ts';
import type { Reason, SuppressedBy } from './reasons.ts';
import type { AttemptState, MessageState } from './states.ts';

export const channels = ['email', 'sms', 'push'] as const;
export type Channel = (typeof channels)[number];

/** `transactional`: the recipient has asked for it by what they did. `marketing`: they may opt out. */
export const categories = ['transactional', 'marketing'] as const;
export type Category = (typeof categories)[number];

interface EmailContent {
  readonly channel: 'email';
  readonly from: Mailbox;
  readonly to: Mailbox;
  readonly cc: readonly Mailbox[];
  readonly bcc: readonly Mailbox[];
  readonly replyTo?: Mailbox;
  readonly subject: string;
  readonly text: string;
  readonly html?: string;
  readonly attachments: readonly { readonly filename: string; readonly contentType: string; readonly base64: string }[];
}

interface SmsContent {
  readonly channel: 'sms';
  readonly to: string;
  readonly text: string;
}

type PushContent = Pick<OutgoingPush, 'channel' | 'target' | 'title' | 'body' | 'data'>;

/** What is sent: sealed at rest, and dropped after a while. As JSON. */
export type MessageContent = EmailContent | SmsContent | PushContent;

/** A recipient of a copy who got none. */
export interface LeftOut {
  readonly address: string;
  readonly reason: Reason;
}

/** What is known of a message as long as it is kept. Sealed at rest. As JSON. */
export interface Envelope {
  /** Mail address, number of E.164, or token of a device. */
  readonly to: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Of a mail: addresses that get copies. */
  readonly cc?: readonly string[];
  readonly bcc?: readonly string[];
  /** Of them, those that want none, or that the provider refused. */
  readonly leftOut?: readonly LeftOut[];
  /** Of them, those that have got theirs, while the recipient has not. */
  readonly copied?: readonly string[];
  /** What a provider has to be able to do: the sender of a mail, the service of a device. */
  readonly from?: string;
  readonly platform?: OutgoingPush['target']['platform'];
  /** Of the number, ISO 3166-1. */
  readonly country?: string;
  readonly segments?: number;
  readonly encoding?: string;
}

/** Of a message, when it is accepted. */
export interface NewMessage {
  readonly id: string;
  /** Whose it is. */
  readonly subject: string;
  readonly state: MessageState;
  /** Why it is in its state, as `shownReason` reads it. */
  readonly reason: string | undefined;
  readonly category: Category;
  readonly template: TemplateUsed | undefined;
  readonly tags: readonly string[];
  readonly envelope: Envelope;
  readonly content: MessageContent;
  readonly sendAt: Date | undefined;
  readonly createdAt: Date;
  /** After it the message is worth nothing any more. */
  readonly expiresAt: Date;
}

export interface TemplateUsed {
  readonly name: string;
  readonly version: number;
  readonly locale: string;
}

/** A message, as its subject sees it. */
export interface Message extends Omit<NewMessage, 'content' | 'expiresAt'> {
  readonly channel: Channel;
  /** Undefined: none was called yet. */
  readonly provider: string | undefined;
  readonly sentAt: Date | undefined;
  /** When something is done of it next; undefined: never. */
  readonly dueAt: Date | undefined;
}

/** One call of a provider. */
export interface Attempt {
  readonly number: number;
  readonly provider: string;
  readonly state: AttemptState;
  readonly reason: string | undefined;
  readonly startedAt: Date;
  readonly endedAt: Date | undefined;
}

/** Whom rows belong to; `isAll`: to anybody. */
export interface Whose {
  readonly subject: string;
  readonly isAll: boolean;
}

/** Why a recipient gets nothing more, and of which message that was learned. */
interface SuppressionRequest extends Suppression {
  readonly subject: string;
  readonly channel: Channel;
  readonly recipient: string;
  readonly messageId: string;
}

/** Whether a recipient gets a message. */
interface SuppressionQuery {
  readonly subject: string;
  readonly channel: Channel;
  readonly recipient: string;
  readonly category: Category;
}

/** A recipient who had opted out wants to get messages again. */
interface OptIn {
  readonly subject: string;
  readonly channel: Channel;
  readonly recipient: string;
  /** An opt-out that is newer holds. */
  readonly saidAt: Date;
}

/** Who does not want messages. */
export interface Suppressions {
  /** Undefined: they get it. */
  reasonFor(query: SuppressionQuery): Promise<SuppressedBy | undefined>;
  /** Undoes what the recipient said before, and no other reason. */
  optIn(optIn: OptIn): Promise<void>;
  suppress(request: SuppressionRequest): Promise<void>;
}

/** What a provider is given. @param ids those of the row. */
export function outgoingOf(
  content: MessageContent,
  ids: Pick<OutgoingMessage, 'id' | 'deduplicationId'>,
): OutgoingMessage {
  if (content.channel !== 'email') return { ...content, ...ids };
  const attachments = content.attachments.map(({ base64, ...attachment }) => ({
    ...attachment,
    content: Buffer.from(base64, 'base64'),
  }));
  return { ...content, ...ids, attachments };
}
