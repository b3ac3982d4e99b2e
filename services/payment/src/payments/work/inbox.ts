import { createDueWork, type DueWork } from '@rollcall/platform/postgres/due-work.ts';
import { isDatabaseUnavailable } from '@rollcall/platform/postgres/pool.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import type { Inbox, ReceivedNotification, Receiving } from '../domain/inbox.ts';

const AT_ONCE = 10;

export interface InboxWorkDeps {
  readonly inbox: Inbox;
  readonly receiving: Receiving;
  readonly log: Logger;
}

/** Works off what providers sent. */
export function createInboxWork({ inbox, receiving, log }: InboxWorkDeps): DueWork {
  return createDueWork<ReceivedNotification>({
    name: 'notifications',
    take: (limit) => inbox.take(limit),
    work: async (notification) => {
      try {
        await receiving.work(notification);
      } catch (err) {
        // It is due again by itself, and is none the worse for it.
        if (isDatabaseUnavailable(err)) throw err;
        log.error({ err, notificationId: notification.id }, 'a notification could not be worked off');
        await receiving.putOff(notification);
      }
    },
    concurrency: AT_ONCE,
    log,
  });
}
