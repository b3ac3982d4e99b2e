import type { DeliveryPolicy } from './types.gen.ts';

/** The `serviceName` of a policy for all services that have none of their own. */
const ALL_SERVICES = '*';

/**
 * The policy that jobs of a service go by: its own, else the one of all services; of several the
 * oldest.
 */
export function effectivePolicy(
  serviceName: string,
  policiesOf: (serviceName: string) => readonly DeliveryPolicy[],
): DeliveryPolicy | undefined {
  return oldest(policiesOf(serviceName)) ?? oldest(policiesOf(ALL_SERVICES));
}

/** Of policies for the same service, the one that counts. */
export function oldest(policies: readonly DeliveryPolicy[]): DeliveryPolicy | undefined {
  return policies.toSorted((a, b) => (ageOf(a) < ageOf(b) ? -1 : 1))[0];
}

function ageOf({ metadata }: DeliveryPolicy): string {
  return `${metadata.creationTimestamp ?? ''} ${metadata.name}`;
}
