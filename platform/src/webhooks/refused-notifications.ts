import { Counter, type Registry } from 'prom-client';
import type { Clock } from '../clock.ts';
import type { Logger } from '../process/log.ts';

/**
 * Why a notification of a provider moved nothing: nothing proves that the provider sent it; it is of
 * another account or mode; it cannot be read; its provider could not be asked whether it is its own; it
 * is about nothing that is known here.
 */
export type NotificationRefusal = 'signature' | 'account' | 'unreadable' | 'unverified' | 'unmatched';

/** @param provider one that is configured: what callers write is no label. */
export type OnNotificationRefused = (provider: string, reason: NotificationRefusal) => void;

/** Between two lines of one provider and reason. */
const LINE_INTERVAL_MS = 60_000;

/** Of one provider and reason. */
interface Lines {
  readonly loggedAtMs: number;
  /** Refused since then, without a line. */
  readonly unlogged: number;
}

/**
 * Counts such notifications, and logs them without anything that is in them: strangers send as many
 * as they like, so that a line tells of all since the one before.
 */
export function createRefusedNotifications(deps: {
  readonly metrics: Registry;
  readonly log: Logger;
  readonly clock: Clock;
}): OnNotificationRefused {
  const { metrics, log, clock } = deps;
  const lines = new Map<string, Lines>();
  const counter = new Counter({
    name: 'rollcall_provider_notifications_refused_total',
    help: 'Notifications in the name of a provider that this replica refused, or found nothing for.',
    labelNames: ['provider', 'reason'],
    registers: [metrics],
  });
  return (provider, reason) => {
    counter.inc({ provider, reason });
    const key = `${provider} ${reason}`;
    const nowMs = clock.monotonicMs();
    const { loggedAtMs, unlogged } = lines.get(key) ?? { loggedAtMs: Number.NEGATIVE_INFINITY, unlogged: 0 };
    const isDue = nowMs - loggedAtMs >= LINE_INTERVAL_MS;
    lines.set(key, isDue ? { loggedAtMs: nowMs, unlogged: 0 } : { loggedAtMs, unlogged: unlogged + 1 });
    if (isDue) log.warn({ provider, reason, count: unlogged + 1 }, 'notifications of a provider were refused');
  };
}
