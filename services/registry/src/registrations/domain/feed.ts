import { createFeed, type Feed } from '../../feeds/feed.ts';
import { isDiscoverable } from './instances.ts';
import type { Registration } from './registration.ts';

/** What happens to discoverable registrations. Heartbeats are no events. */
export type RegistrationFeed = Feed<Registration>;

/**
 * What happens to names, each shown as its representative is.
 *
 * @param capacity how many past events are kept.
 */
export function createRegistrationFeed(capacity: number): RegistrationFeed {
  return createFeed({
    capacity,
    keyOf: ({ serviceName }) => serviceName,
    show: ({ serviceId, url, currentVersion, capabilities }) =>
      JSON.stringify([serviceId, url, currentVersion, capabilities]),
    isPresent: isDiscoverable,
  });
}

/** What happens to instances. @param capacity as for {@link createRegistrationFeed}. */
export function createInstanceFeed(capacity: number): RegistrationFeed {
  return createFeed({
    capacity,
    keyOf: ({ serviceName, instanceId = '' }) => `${serviceName}:${instanceId}`,
    show: ({
      id,
      serviceId,
      url,
      currentVersion,
      capabilities,
      health,
      metadata,
      zone,
      weight,
      graphqlPath,
      ...rest
    }) =>
      JSON.stringify([
        [id, serviceId, url, currentVersion, capabilities],
        [health, metadata, zone, weight, graphqlPath, rest.check, rest.checkResult],
      ]),
    isPresent: isDiscoverable,
  });
}
