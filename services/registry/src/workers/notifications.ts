import type { Actor } from '@rollcall/platform/lifecycle.ts';
import type { HttpPost } from '../domain/notifications.ts';
import type { NotificationQueue } from '../store/notification-queue.ts';

const TIMEOUT_MS = 10_000;

/** Sends what is in the queue. */
export function notificationWorker(queue: NotificationQueue): Actor {
  return {
    name: 'notifications',
    start() {
      queue.start();
      return Promise.resolve();
    },
    stop: () => queue.stop(),
  };
}

/**
 * Posts without following redirects, which could lead anywhere, and without reading the answer's body.
 *
 * @returns the status.
 */
export async function post({ url, headers, body }: HttpPost): Promise<number> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const response = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal });
  await response.body?.cancel();
  return response.status;
}
