import type { PushTarget } from './recipients.ts';
import type { Receipt } from './states.ts';

interface Outgoing {
  /** Of the message: a UUID, the same at every attempt and provider. */
  readonly id: string;
  /**
   * A number for providers that know a repetition by 31 bits. The store counts it: of a hash, two
   * among 100,000 would be alike, and the second message would be lost.
   */
  readonly deduplicationId: number;
}

/** An address that `parseEmailAddress` has read, and a name without control characters. */
export interface Mailbox {
  readonly address: string;
  readonly name?: string;
}

interface Attachment {
  readonly filename: string;
  readonly contentType: string;
  readonly content: Uint8Array;
}

export interface OutgoingEmail extends Outgoing {
  readonly channel: 'email';
  readonly from: Mailbox;
  readonly to: Mailbox;
  readonly cc: readonly Mailbox[];
  readonly bcc: readonly Mailbox[];
  readonly replyTo?: Mailbox;
  readonly subject: string;
  readonly text: string;
  readonly html?: string;
  readonly attachments: readonly Attachment[];
  /** Of this recipient, for one click (RFC 8058); transactional mail has none. */
  readonly unsubscribeUrl?: string;
}

export interface OutgoingSms extends Outgoing {
  readonly channel: 'sms';
  /** Of E.164. */
  readonly to: string;
  readonly text: string;
}

export interface OutgoingPush extends Outgoing {
  readonly channel: 'push';
  readonly target: PushTarget;
  readonly title?: string;
  readonly body?: string;
  readonly data: Readonly<Record<string, string>>;
}

export type OutgoingMessage = OutgoingEmail | OutgoingSms | OutgoingPush;

/**
 * Why a provider does not take a message. `recipient`, `content`: no other would. `size`: this one
 * never takes so large a message, and another may. The others say something of our account:
 * `credentials`, `credit`, `sender` (a number or domain that is not ours).
 */
export type RefusalCause = 'recipient' | 'content' | 'size' | 'credentials' | 'credit' | 'sender';

/** Those that say nothing of our account there, nor of the provider. */
export const causesOfMessage: ReadonlySet<RefusalCause> = new Set(['recipient', 'content', 'size']);

/** Why a recipient is to get nothing more. */
export interface Suppression {
  /**
   * The address does not exist; its owner wants no marketing, or no SMS at all; called a mail spam;
   * the app is no longer there.
   */
  readonly kind: 'address-unknown' | 'opted-out' | 'complained' | 'token-gone';
  /** Registrations of a device that are newer than this hold. */
  readonly since?: Date;
}

/**
 * What became of a call. Reasons are codes such as `550 5.1.1`: they are kept, and what providers
 * write holds addresses.
 */
export type SendOutcome =
  | {
      readonly outcome: 'accepted';
      /** By which the provider's notifications name the message. */
      readonly providerId: string;
      /** Of several recipients, those that were refused; the first one alone for good. */
      readonly refusedRecipients?: readonly RefusedRecipient[];
    }
  | {
      readonly outcome: 'refused';
      readonly cause: RefusalCause;
      readonly reason: string;
      readonly suppress?: Suppression;
    }
  /** Surely not taken for its recipient. */
  | {
      readonly outcome: 'failed';
      readonly reason: string;
      readonly retryAfterMs?: number;
      /** Addresses that have got their copy of the mail all the same. */
      readonly copied?: readonly string[];
    }
  /** Nobody knows. */
  | { readonly outcome: 'unknown'; readonly reason: string };

export interface RefusedRecipient {
  readonly address: string;
  readonly reason: string;
  readonly suppress?: Suppression;
}

/** A request that a provider made, or somebody in its name. */
export interface ProviderNotification {
  /** As the provider knows it, with its query: from our settings, never from `Host`. */
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** As it came: signatures are of bytes. */
  readonly body: Uint8Array;
}

/** One thing that a provider says of one message. */
export interface ProviderReport {
  /** The same when it is said again. */
  readonly eventKey: string;
  readonly providerId?: string;
  /** Of the message, where the provider hands on what we told it. */
  readonly messageId?: string;
  /** Of a message that may have several. */
  readonly recipient?: string;
  /** Absent where it does not move the message, as when a mail is deferred. */
  readonly receipt?: Receipt;
  readonly reason?: string;
  readonly suppress?: Suppression;
  /** Of a recipient who had opted out, and wants to get messages again. */
  readonly isOptIn?: boolean;
  /** Anybody may have said it who knows the message: nobody but its recipient is suppressed by it. */
  readonly isUnproven?: boolean;
}

/** `forged`: its signature does not hold. `unreadable`: it is none of this provider's. */
export type NotificationReading = { readonly reports: readonly ProviderReport[] } | 'forged' | 'unreadable';

/** One way out for the messages of a channel. Nothing it does throws, but for errors of programming. */
export interface MessageProvider<Message extends OutgoingMessage = OutgoingMessage> {
  readonly name: string;
  readonly channel: Message['channel'];
  /**
   * For so long, a message that is sent again has no second effect. Absent: it has.
   */
  readonly idempotentForMs?: number;
  /** Makes one attempt. An abort makes what was under way `unknown`. */
  send(message: Message, signal: AbortSignal): Promise<SendOutcome>;
  readNotification?(notification: ProviderNotification): NotificationReading | Promise<NotificationReading>;
  /**
   * Begins to hand on what the provider says over connections of its own.
   *
   * @param keep rejects where the provider is to say it again.
   */
  onReports?(keep: (reports: readonly ProviderReport[]) => Promise<void>): void;
  /** Ends its connections. */
  close(): Promise<void>;
}
