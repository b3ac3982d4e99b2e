import { errorMessage } from '@rollcall/platform/errors.ts';
import {
  createOutbox,
  type Outbox,
  type OutboxOptions,
  type OutboxRetries,
} from '@rollcall/platform/postgres/outbox.ts';
import type { OutboxTable } from '@rollcall/platform/postgres/outbox-table.ts';
import type { OutboxAttempt } from '@rollcall/platform/queues/outbox-states.ts';
import { Counter, type Registry } from 'prom-client';
import type { Notification } from '../domain/notifications.ts';
import type { QueuedNotification } from '../store/notifications.ts';

const QUEUE_SCHEMA = 'registry_queue';

type Shared = Pick<OutboxOptions<QueuedNotification>, 'databaseUrl' | 'pool' | 'retries' | 'clock' | 'log'>;

/** Thirteen attempts within two to three hours. */
export const notificationRetries: OutboxRetries = {
  limit: 12,
  delaySeconds: 5,
  delayMaxSeconds: 1800,
  relaySeconds: 15,
};

export interface NotificationOutboxOptions extends Shared {
  readonly notifications: OutboxTable<QueuedNotification>;
  /** Makes one attempt. @throws when what says where and how to send cannot be read. */
  readonly attempt: (notification: Notification) => Promise<OutboxAttempt>;
  readonly metrics: Registry;
}

/** Sends the notifications that are stored. */
export function createNotificationOutbox(options: NotificationOutboxOptions): Outbox {
  const { databaseUrl, pool, retries, notifications, clock, log, metrics } = options;
  const attempts = new Counter({
    name: 'rollcall_notification_attempts_total',
    help: 'Attempts of this replica to send a notification.',
    labelNames: ['result'],
    registers: [metrics],
  });
  return createOutbox({
    name: 'notifications',
    databaseUrl,
    pool,
    schema: QUEUE_SCHEMA,
    messages: notifications,
    retries,
    clock,
    log,
    async attempt(notification) {
      try {
        return await options.attempt(notification);
      } catch (error) {
        const id = notification.id;
        log.debug(
          { notification: id, message: errorMessage(error) },
          'the configuration of a channel could not be read',
        );
        return { result: 'failed', reason: 'the configuration could not be read' };
      }
    },
    onOutcome({ id: notification, channel, serviceName: service, event }, { result, reason, state, attempt }) {
      attempts.inc({ result });
      const outcome = { notification, channel, service, event, reason, attempt };
      if (state === 'dead') log.warn(outcome, 'notification given up and kept as a dead letter');
      else if (state === 'pending') log.info(outcome, 'notification failed and will be sent again');
    },
  });
}
