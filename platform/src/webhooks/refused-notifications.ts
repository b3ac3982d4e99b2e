import { Counter, type Registry } from 'prom-client';
import type { Logger } from '../process/log.ts';

/**
 * Why a notification of a provider moved nothing: nothing proves that the provider sent it; it is of
 * another account or mode; it cannot be read; its provider could not be asked whether it is its own; it
 * is about nothing that is known here.
 */
export type NotificationRefusal = 'signature' | 'account' | 'unreadable' | 'unverified' | 'unmatched';

/** @param provider one that is configured: what callers write is no label. */
export type OnNotificationRefused = (provider: string, reason: NotificationRefusal) => void;

/** Counts such notifications, and logs each without anything that is in it. */
export function createRefusedNotifications(deps: {
  readonly metrics: Registry;
  readonly log: Logger;
}): OnNotificationRefused {
  const counter = new Counter({
    name: 'rollcall_provider_notifications_refused_total',
    help: 'Notifications in the name of a provider that this replica refused, or found nothing for.',
    labelNames: ['provider', 'reason'],
    registers: [deps.metrics],
  });
  return (provider, reason) => {
    counter.inc({ provider, reason });
    deps.log.warn({ provider, reason }, 'a notification of a provider was refused');
  };
}
