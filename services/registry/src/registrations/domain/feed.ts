import { createFeed, type Feed } from '../../feeds/feed.ts';
import type { Registration } from './registration.ts';
import { isDiscoverable } from './registrations.ts';

/** What happens to discoverable registrations. Heartbeats are no events. */
export type RegistrationFeed = Feed<Registration>;

/** @param capacity how many past events are kept. */
export function createRegistrationFeed(capacity: number): RegistrationFeed {
  return createFeed({
    capacity,
    keyOf: ({ serviceName }) => serviceName,
    show: ({ id, url, currentVersion, capabilities }) => JSON.stringify([id, url, currentVersion, capabilities]),
    isPresent: isDiscoverable,
  });
}
