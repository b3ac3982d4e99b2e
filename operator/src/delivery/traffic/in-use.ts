import type { Surroundings } from '../job/snapshot.ts';
import { pinOf } from './selector.ts';

/** Whether a Service or a route still sends traffic to what the job made, which then must stay. */
export function isExtraInUse({ extra, extraServices, services, routes }: Surroundings): boolean {
  const hash = extra?.pods?.hash;
  if (hash !== undefined && services.some((service) => pinOf(service) === hash)) return true;
  const canaries = new Set([...extraServices.values()].map(({ metadata }) => metadata.name));
  const backends = (routes ?? [])
    .flatMap(({ spec }) => spec.rules ?? [])
    .flatMap(({ backendRefs }) => backendRefs ?? []);
  return backends.some(({ name, weight = 1 }) => canaries.has(name) && weight > 0);
}
