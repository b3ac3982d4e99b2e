import { ailmentOf } from '@rollcall/platform/health-words.ts';
import type { Registration } from './registration.ts';

/** Whether other programs may discover the instance. */
export function isDiscoverable(registration: Registration): boolean {
  return registration.phase === 'Registered';
}

/**
 * Whether the instance has not said of itself that it is `unhealthy`, `degraded` or `draining`, and
 * its check is not failing.
 */
export function isHealthy({ health, checkResult }: Registration): boolean {
  return ailmentOf(health, checkResult?.status) === undefined;
}

/**
 * What stands for a name: of its discoverable instances the healthy one that has been registered
 * longest, else the one that has; with the id that all of them share (docs/decisions/0300).
 *
 * @param instances of one name; of the same second, in the order in which they were created.
 * @returns undefined when none can be discovered.
 */
export function representativeOf(instances: readonly Registration[]): Registration | undefined {
  const living = instances.filter(isDiscoverable);
  const first = firstOf(living);
  if (first === undefined) return undefined;
  const healthy = living.filter(isHealthy);
  const chosen = (healthy.length > 0 ? healthy : living).reduce(longestRegistered);
  const { serviceId } = first;
  return chosen.serviceId === serviceId ? chosen : { ...chosen, serviceId };
}

/**
 * Orders instances of one name by how long they have been registered. Times are of whole seconds:
 * of the same one, the first instance of the name comes first, and replicas agree on the others.
 */
export function byRegistration(a: Registration, b: Registration): number {
  const difference = a.registeredAt.getTime() - b.registeredAt.getTime() || rankOf(a) - rankOf(b);
  if (difference !== 0) return difference;
  return a.id < b.id ? -1 : 1;
}

function longestRegistered(a: Registration, b: Registration): Registration {
  return byRegistration(a, b) <= 0 ? a : b;
}

/** The service has the id of its first instance. */
function rankOf({ id, serviceId }: Registration): number {
  return id === serviceId ? 0 : 1;
}

/** Instances by name. */
export interface Instances {
  /** Expired ones included, in the order in which they were put. */
  of(serviceName: string): readonly Registration[];
  find(serviceName: string, instanceId: string | undefined): Registration | undefined;
  put(registration: Registration): void;
  /** Removes this life of the instance; another one stays. */
  remove(life: Pick<Registration, 'serviceName' | 'instanceId' | 'id'>): void;
  values(): Generator<Registration, void>;
}

const NONE: readonly Registration[] = [];

export function createInstances(): Instances {
  const byName = new Map<string, readonly Registration[]>();

  const of = (serviceName: string): readonly Registration[] => byName.get(serviceName) ?? NONE;

  function set(serviceName: string, instances: readonly Registration[]): void {
    if (instances.length === 0) byName.delete(serviceName);
    else byName.set(serviceName, instances);
  }

  return {
    of,
    find: (serviceName, instanceId) => of(serviceName).find((each) => each.instanceId === instanceId),
    put(registration) {
      const { serviceName, instanceId, id } = registration;
      const known = of(serviceName);
      const at = known.findIndex((each) => each.instanceId === instanceId);
      if (known[at]?.id === id) return set(serviceName, known.with(at, registration));
      // Another life of an instance is younger than all others.
      set(serviceName, [...(at === -1 ? known : known.toSpliced(at, 1)), registration]);
    },
    remove(life) {
      const known = of(life.serviceName);
      set(
        life.serviceName,
        known.filter(({ id }) => id !== life.id),
      );
    },
    *values() {
      for (const instances of byName.values()) yield* instances;
    },
  };
}

/** Orders instances by when they were created, and those of the same second in the same way everywhere. */
export function byCreation(a: Registration, b: Registration): number {
  return a.createdAt.getTime() - b.createdAt.getTime() || (a.id < b.id ? -1 : 1);
}

/** The one that was created first: of the same second, as the API server tells times, the first here. */
function firstOf(instances: readonly Registration[]): Registration | undefined {
  let first: Registration | undefined;
  for (const each of instances) if (first === undefined || each.createdAt < first.createdAt) first = each;
  return first;
}
