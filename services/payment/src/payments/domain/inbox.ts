import { commonError } from '@rollcall/platform/common-errors.ts';
import type { ListPage, NewestPage } from '@rollcall/platform/lists.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import type { OnNotificationRefused } from '@rollcall/platform/webhooks/refused-notifications.ts';
import { paymentError } from '../../domain/errors.ts';
import { NotificationError } from '../../domain/notification-error.ts';
import type { PaymentProvider, ProviderName, RawNotification } from '../../domain/ports.ts';
import type { Settle, Settled } from './settle.ts';
import type { Providers } from './take.ts';

interface NewNotification {
  readonly provider: ProviderName;
  readonly eventKey: string;
  /** As it came. */
  readonly body: Buffer;
  /** What a person should know, without personal data. */
  readonly remark: string | undefined;
}

/** A notification that its provider has surely sent. */
export interface ReceivedNotification {
  readonly id: string;
  readonly provider: ProviderName;
  /** What came. @throws Error where no key opens it. */
  readonly open: () => Buffer;
  /** How often it was worked on in vain. */
  readonly attempts: number;
}

/** A notification that a person has to look at. */
interface NotificationInReview {
  readonly id: string;
  readonly provider: ProviderName;
  readonly remark: string | null;
  readonly attempts: number;
  readonly createdAt: Date;
}

/**
 * How the work on a notification ends. What is done and was about no payment, or about one whose payer
 * was erased, is kept no longer.
 */
type InboxEnd =
  | { readonly state: 'done'; readonly paymentId: string | undefined }
  /** A person has to look. */
  | { readonly state: 'review'; readonly remark: string };

/** Where notifications wait to be worked off. */
export interface Inbox {
  /** @returns false where the event is there already. */
  keep(notification: NewNotification): Promise<boolean>;
  take(limit: number): Promise<readonly ReceivedNotification[]>;
  end(id: string, end: InboxEnd): Promise<void>;
  putOff(id: string, seconds: number): Promise<void>;
  /** Those in review, newest first. */
  list(page: ListPage): Promise<NewestPage<NotificationInReview>>;
  /** Takes one out of review, to be worked on again, or to be left and kept no longer. @returns false: there is none. */
  resolve(id: string, outcome: 'again' | 'done'): Promise<boolean>;
  /** Deletes old ones; those in review lose their bytes. @param limit how many at most. @returns how many. */
  forget(limit: number): Promise<number>;
}

export interface ReceivingDeps {
  readonly inbox: Inbox;
  readonly providers: Providers;
  readonly settle: Settle;
  readonly onRefused: OnNotificationRefused;
  readonly log: Logger;
}

/** How providers tell what happened. */
export interface Receiving {
  /**
   * Keeps a notification once, after it is known that the provider sent it.
   *
   * @throws ServiceError NOT_FOUND for a provider without settings; FORGED, MALFORMED, UNAVAILABLE.
   */
  receive(name: ProviderName, notification: RawNotification): Promise<void>;
  /** Does what it says. @throws Error where that fails. */
  work(notification: ReceivedNotification): Promise<void>;
  /** It failed: it is tried again later, and is then for a person. */
  putOff(notification: ReceivedNotification): Promise<void>;
}

/** Seconds until it is looked at again: what it is about may be written down just now. */
const LATER_SECONDS = [1, 5, 60, 600];

export function createReceiving({ inbox, providers, settle, onRefused, log }: ReceivingDeps): Receiving {
  /** @param isUnmatched nothing that is known is what it is about. */
  async function later({ id, provider, attempts }: ReceivedNotification, isUnmatched: boolean): Promise<void> {
    const seconds = LATER_SECONDS[attempts];
    if (seconds !== undefined) return inbox.putOff(id, seconds);
    if (isUnmatched) onRefused(provider, 'unmatched');
    const remark = isUnmatched ? 'it is about nothing that is known here' : 'it cannot be worked off';
    log.warn({ provider, notificationId: id, remark }, 'a notification is for a person to look at');
    return inbox.end(id, { state: 'review', remark });
  }

  async function verified(provider: PaymentProvider, notification: RawNotification) {
    try {
      return await provider.verify(notification);
    } catch (error) {
      if (!(error instanceof NotificationError)) throw error;
      onRefused(provider.name, error.reason);
      if (error.code === 'UNVERIFIED') throw paymentError('NOT_VERIFIED', { cause: error });
      throw paymentError(error.code, { message: error.message, cause: error });
    }
  }

  return {
    putOff: (notification) => later(notification, false),
    async receive(name, notification) {
      const provider = providers.find(name);
      if (provider === undefined) throw commonError('NOT_FOUND');
      const { eventKey, warnings } = await verified(provider, notification);
      const remark = warnings.length === 0 ? undefined : warnings.join('; ');
      if (remark !== undefined) log.warn({ provider: name, remark }, 'a notification is taken with a remark');
      await inbox.keep({ provider: name, eventKey, body: notification.body, remark });
    },
    async work(notification) {
      const { id, provider: name } = notification;
      const facts = factsOf(providers.find(name), notification.open());
      if (facts === undefined) {
        onRefused(name, 'unreadable');
        await inbox.end(id, { state: 'review', remark: 'it cannot be read' });
        return;
      }
      const settled: (Settled | undefined)[] = [];
      for (const fact of facts) settled.push(await settle({ provider: name, fact, source: 'notification' }));
      const paymentId = settled.find((each) => each?.paymentId !== undefined)?.paymentId;
      if (!settled.includes(undefined)) await inbox.end(id, { state: 'done', paymentId });
      else await later(notification, true);
    },
  };
}

function factsOf(provider: PaymentProvider | undefined, body: Buffer) {
  try {
    return provider?.readFacts(body);
  } catch (error) {
    if (error instanceof NotificationError) return undefined;
    throw error;
  }
}
