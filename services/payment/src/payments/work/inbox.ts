import { createDueWork, type DueWork } from '@rollcall/platform/postgres/due-work.ts';
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
    work: (notification) => receiving.work(notification),
    concurrency: AT_ONCE,
    log,
  });
}
