import { type AllowedAddresses, addressRules } from '@rollcall/platform/outbound/address-rules.ts';
import { createGuardedAgent } from '@rollcall/platform/outbound/guarded-agent.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { HttpPost } from '../domain/sending.ts';
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
 * Posts to the allowed addresses without following redirects, which could lead anywhere, and
 * without reading the answer's body.
 *
 * @returns a function that returns the status.
 */
export function createPost(addresses: AllowedAddresses): (request: HttpPost) => Promise<number> {
  const agent = createGuardedAgent({
    mayConnect: addressRules[addresses],
    connectTimeoutMs: TIMEOUT_MS,
    keepAlive: false,
  });
  return async ({ url, headers, body }) => {
    const { origin, pathname, search } = new URL(url);
    const response = await agent.request({
      origin,
      path: pathname + search,
      method: 'POST',
      headers: { ...headers, 'user-agent': 'rollcall' },
      body,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    // Nobody reads it, and so nobody has to know that it broke.
    response.body.on('error', () => undefined);
    response.body.destroy();
    return response.statusCode;
  };
}
