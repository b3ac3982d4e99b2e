import { type AddressRule, createGuardedAgent } from '@rollcall/platform/http/guarded-agent.ts';
import { addressScope, isPublicAddress } from '@rollcall/platform/http/public-address.ts';
import type { Actor } from '@rollcall/platform/lifecycle.ts';
import type { HttpPost } from '../domain/notifications.ts';
import type { NotificationQueue } from '../store/notification-queue.ts';

const TIMEOUT_MS = 10_000;

/**
 * Where notifications may go: to the internet only; also to private addresses, as receivers in the cluster have; or anywhere,
 * this machine and its link included. Whoever may configure a channel chooses the URL, and would else reach what trusts the
 * registry's own address, or the credentials that clouds serve on the link.
 */
export type WebhookAddresses = 'public' | 'cluster' | 'any';

/** Which addresses that means. */
export const webhookAddressRules: Readonly<Record<WebhookAddresses, AddressRule>> = {
  public: isPublicAddress,
  cluster: (address) => addressScope(address) !== 'special',
  any: () => true,
};

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
 * Posts to the allowed addresses without following redirects, which could lead anywhere, and without reading the answer's body.
 *
 * @returns a function that returns the status.
 */
export function createPost(addresses: WebhookAddresses): (request: HttpPost) => Promise<number> {
  const agent = createGuardedAgent({
    mayConnect: webhookAddressRules[addresses],
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
    // Nobody reads it, and so nobody is to be told that it broke.
    response.body.on('error', () => undefined);
    response.body.destroy();
    return response.statusCode;
  };
}
