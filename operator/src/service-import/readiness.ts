import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import { objectKey } from '@rollcall/platform/kube/store.ts';
import { importedFrom } from './desired.ts';
import type { ServiceEndpoints } from './service-endpoints.ts';

/** Since when registrations made from Services have had no ready endpoint. */
export function createReadiness(endpoints: Pick<ServiceEndpoints, 'hasReady' | 'of'>, clock: Clock) {
  const unreadySince = new Map<string, number>();

  function look(registration: ServiceRegistration): boolean {
    const key = objectKey(registration);
    const wasUnready = unreadySince.has(key);
    const isUnready = isReady(endpoints, registration) === false;
    if (!isUnready) unreadySince.delete(key);
    else if (!wasUnready) unreadySince.set(key, clock.monotonicMs());
    return isUnready !== wasUnready;
  }

  function unreadySinceMs(registration: ServiceRegistration): number | undefined {
    look(registration);
    return unreadySince.get(objectKey(registration));
  }

  return {
    /** @returns whether it is another than when it was last looked at. */
    look,
    /** Whether its endpoint is, of the registration of one; undefined while nobody can tell. */
    isEndpointReady: (registration: ServiceRegistration): boolean | undefined =>
      registration.spec.instanceId === undefined ? undefined : isReady(endpoints, registration),
    /** Monotonic ms, at the latest since the first look; undefined while ready. */
    unreadySinceMs,
    forget: (registration: ServiceRegistration): void => void unreadySince.delete(objectKey(registration)),
  };
}

/** Undefined while nobody can tell. */
function isReady(
  endpoints: Pick<ServiceEndpoints, 'hasReady' | 'of'>,
  registration: ServiceRegistration,
): boolean | undefined {
  const serviceKey = importedFrom(registration) ?? '';
  const { instanceId } = registration.spec;
  if (instanceId === undefined) return endpoints.hasReady(serviceKey);
  const known = endpoints.of(serviceKey);
  return known === undefined ? undefined : known.get(instanceId)?.ready === true;
}
