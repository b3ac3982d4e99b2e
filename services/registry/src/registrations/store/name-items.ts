import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { ItemsOf } from '../../kube/feed-source.ts';
import { byCreation, createInstances, representativeOf } from '../domain/instances.ts';
import type { Registration } from '../domain/registration.ts';
import { isCanonical, toRegistration } from './registrations.ts';

/** Names as the store's watch has brought them. */
export interface NameItems extends ItemsOf<ServiceRegistration, Registration> {
  /**
   * All instances of a name, expired ones included, in the order in which they were created. Undefined
   * where one that was created at this version came in a list: that does not tell the order.
   */
  instancesSince(serviceName: string, version: number): readonly Registration[] | undefined;
}

/** Shows names to a feed, each as what stands for it. */
export function createNameItems(): NameItems {
  let instances = createInstances();
  let listedVersion = 0;
  return {
    instancesSince: (serviceName, version) => (version > listedVersion ? instances.of(serviceName) : undefined),
    listed(objects, version) {
      instances = createInstances();
      listedVersion = version;
      const listed = objects.filter(isCanonical).map(toRegistration);
      // A list is in the order of names.
      for (const each of listed.toSorted(byCreation)) instances.put(each);
      const names = new Set(Array.from(instances.values(), ({ serviceName }) => serviceName));
      return [...names].flatMap((name) => representativeOf(instances.of(name)) ?? []);
    },
    changed(object, deleted) {
      if (!isCanonical(object)) return undefined;
      const registration = toRegistration(object);
      if (deleted) instances.remove(registration);
      else instances.put(registration);
      const representative = representativeOf(instances.of(registration.serviceName));
      return representative === undefined ? { item: registration, deleted } : { item: representative, deleted: false };
    },
  };
}

/** Shows each instance to a feed. */
export const instanceItems: ItemsOf<ServiceRegistration, Registration> = {
  listed: (objects) => objects.filter(isCanonical).map(toRegistration),
  changed: (object, deleted) => (isCanonical(object) ? { item: toRegistration(object), deleted } : undefined),
};
