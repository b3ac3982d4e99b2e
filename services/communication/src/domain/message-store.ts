import type { ListPage, NewestPage } from '@rollcall/platform/lists.ts';
import type {
  Attempt,
  Category,
  Channel,
  Envelope,
  LeftOut,
  Message,
  MessageContent,
  NewMessage,
  Whose,
} from './messages.ts';
import type { AttemptEvent, MessageEvent, MessageState } from './states.ts';

/** Which messages a list has. */
interface MessageFilter {
  readonly state?: MessageState | undefined;
  readonly channel?: Channel | undefined;
  readonly to?: string | undefined;
  readonly tag?: string | undefined;
  readonly template?: string | undefined;
}

/** Something that happened to a message. */
export interface MessageHistoryEntry {
  readonly type: string;
  readonly at: Date;
}

/** Messages, as their subjects read and command them. */
export interface MessageStore {
  /** @returns undefined where one is there by the same id, which stays as it is. */
  insert(message: NewMessage): Promise<Message | undefined>;
  find(id: string, whose: Whose): Promise<Message | undefined>;
  /** Calls of providers for each of them, in their order. */
  attempts(ids: readonly string[]): Promise<ReadonlyMap<string, readonly Attempt[]>>;
  /** What happened to each of them, the oldest first. */
  histories(ids: readonly string[]): Promise<ReadonlyMap<string, readonly MessageHistoryEntry[]>>;
  list(whose: Whose, filter: MessageFilter, page: ListPage): Promise<NewestPage<Message>>;
  /** @returns whether its state allowed it. */
  cancel(id: string): Promise<boolean>;
  /** Changes when it is sent. @returns whether it still waited for its time. */
  reschedule(id: string, times: { readonly sendAt: Date; readonly expiresAt: Date }): Promise<boolean>;
  /**
   * Tries it again for so long; a call that is repeated has done so.
   *
   * @returns false where its state or its dropped content does not allow it.
   */
  restart(id: string, restart: { readonly callId: string; readonly expiresAfterMs: number }): Promise<boolean>;
}

/** A message of which something is to be done, as far as it decides what. */
export interface DueMessage {
  readonly id: string;
  readonly subject: string;
  readonly channel: Channel;
  readonly state: MessageState;
  readonly category: Category;
  readonly envelope: Envelope;
  readonly provider: string | undefined;
  readonly attempts: number;
  readonly tried: readonly string[];
  readonly pauses: number;
  readonly repeats: number;
  readonly begunAt: Date | undefined;
  readonly expiresAt: Date;
  /** Of what is sent, as it is stored; 0: it was dropped. */
  readonly contentBytes: number;
  /** For what is told of its changes, with the next four. */
  readonly template: Message['template'];
  readonly tags: readonly string[];
  readonly createdAt: Date;
  readonly sentAt: Date | undefined;
  /** Why it is in its state. */
  readonly reason: string | undefined;
}

/** One call of a provider, written down. */
export interface BegunAttempt {
  readonly number: number;
  readonly deduplicationId: number;
  /** Undefined: it was dropped. */
  readonly content: MessageContent | undefined;
}

/** What becomes of a message beside its state. Members that are absent stay as they are. */
export interface MessageChange {
  readonly event: MessageEvent;
  /** When something is to be done next; undefined: never. */
  readonly dueInMs?: number | undefined;
  readonly reason?: string | undefined;
  readonly provider?: string;
  readonly tried?: readonly string[];
  readonly pauses?: number;
  readonly repeats?: number;
}

/** Until when a message waits; `dueInMs` undefined: for a report, or its sender. */
interface Waiting extends Pick<MessageChange, 'tried' | 'pauses' | 'repeats'> {
  readonly state: MessageState;
  readonly dueInMs: number | undefined;
}

/** How a call ended. */
export interface AttemptEnd {
  readonly number: number;
  readonly event: AttemptEvent;
  readonly reason?: string | undefined;
  readonly providerId?: string | undefined;
}

/** Messages, as they are sent. Changes are guarded by the state, and leave what is elsewhere as it is. */
export interface SendingStore {
  take(channel: Channel, limit: number): Promise<readonly DueMessage[]>;
  /** Of a message whose call is looked up or made again. */
  read(id: string): Promise<BegunAttempt | undefined>;
  /** Writes a call down. @returns undefined where the message is no longer to be sent. */
  begin(due: DueMessage, provider: string, leaseMs: number): Promise<BegunAttempt | undefined>;
  change(id: string, change: MessageChange): Promise<boolean>;
  /** Ends a call, and changes the message where that call still is its last one, or was accepted. */
  finish(due: DueMessage, end: AttemptEnd, change: MessageChange): Promise<boolean>;
  /** Writes down who gets no copy, beside who got none before. */
  leaveOut(id: string, leftOut: readonly LeftOut[]): Promise<void>;
  /** Writes down who has got a copy, and gets no other. */
  addCopied(id: string, copied: readonly string[]): Promise<void>;
  /** Changes when it is due, and what is counted of its waiting. */
  putOff(id: string, wait: Waiting): Promise<void>;
}
