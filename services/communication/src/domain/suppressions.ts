import type { ListPage, NewestPage } from '@rollcall/platform/lists.ts';
import { type Parsed, parseEmailAddress } from '@rollcall/platform/mail-address.ts';
import { parsePhoneNumber } from './recipients.ts';

/** Why somebody gets no messages. */
export const suppressionReasons = ['hard-bounce', 'complaint', 'unsubscribe', 'stop', 'manual'] as const;
export type SuppressionReason = (typeof suppressionReasons)[number];

/** Which messages: all, or those that their recipients may opt out of. */
export const suppressionScopes = ['all', 'marketing'] as const;
export type SuppressionScope = (typeof suppressionScopes)[number];

/** Channels whose recipients can be suppressed; devices are forgotten instead. */
export const suppressedChannels = ['email', 'sms'] as const;
export type SuppressedChannel = (typeof suppressedChannels)[number];

/**
 * Who unsubscribes from marketing still gets receipts and one-time codes. Who answers STOP gets
 * nothing more from carriers, whatever we do; who complains would complain again.
 */
export const scopeOfReason: Readonly<Record<SuppressionReason, SuppressionScope>> = {
  'hard-bounce': 'all',
  complaint: 'all',
  unsubscribe: 'marketing',
  stop: 'all',
  manual: 'all',
};

/** Whom a subject sends something to. */
export interface Addressee {
  readonly subject: string;
  readonly channel: SuppressedChannel;
  /** As {@link parseAddressee} has it. */
  readonly recipient: string;
}

interface SuppressionEntry extends Addressee {
  readonly reason: SuppressionReason;
  readonly scope: SuppressionScope;
  /** By which it was learned. */
  readonly messageId: string | undefined;
}

export interface StoredSuppression extends SuppressionEntry {
  readonly createdAt: Date;
}

interface SuppressionFilter {
  readonly recipient: string | undefined;
  readonly channel: SuppressedChannel | undefined;
  readonly reason: SuppressionReason | undefined;
}

/** Which of those of one recipient; all where nothing is said. */
interface SuppressionsOfOne {
  readonly reason?: SuppressionReason | undefined;
  /** None that is newer. */
  readonly before?: Date;
}

/** Suppressions, as they are stored. */
export interface SuppressionStore {
  /** That of the oldest one that holds for messages of a category. */
  reasonFor(addressee: Addressee, category: 'transactional' | 'marketing'): Promise<SuppressionReason | undefined>;
  /** One that is there for the same reason keeps its age and its message. */
  add(entry: SuppressionEntry): Promise<{ readonly suppression: StoredSuppression; readonly isNew: boolean }>;
  /** @returns whether there was one. */
  remove(addressee: Addressee, which: SuppressionsOfOne): Promise<boolean>;
  list(subject: string, filter: SuppressionFilter, page: ListPage): Promise<NewestPage<StoredSuppression>>;
}

/** Pure. Reads a mail address, or the number of a mobile phone with its country code. */
export function parseAddressee(text: string): Parsed<Omit<Addressee, 'subject'>> {
  if (!text.startsWith('+') || text.includes('@')) {
    const address = parseEmailAddress(text);
    return 'value' in address ? { value: { channel: 'email', recipient: address.value } } : address;
  }
  const number = parsePhoneNumber(text, 'ZA');
  return 'value' in number ? { value: { channel: 'sms', recipient: number.value.e164 } } : number;
}
