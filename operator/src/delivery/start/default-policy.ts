import type { DeliveryPolicy, DeliveryPolicySpec } from '@rollcall/crds/types.gen.ts';

/** The policy for all services, and what is used without any: the defaults of the custom resource. */
const ALL_SERVICES = '*';

const defaults: Omit<DeliveryPolicySpec, 'serviceName'> = {
  strategy: 'Rolling',
  rolling: { maxSurge: '25%', maxUnavailable: 0, progressDeadlineSeconds: 600, bakeSeconds: 5 },
  blueGreen: { bakeSeconds: 60, autoPromote: true },
  canary: {
    steps: [10, 25, 50].map((weight) => ({ weight, pauseSeconds: 60 })),
    trafficRouter: 'Replicas',
  },
  requireHeartbeat: false,
  onFailure: 'RollBack',
  drainSeconds: 30,
  supersede: false,
  autoDeploy: false,
  preReleases: false,
};

/** The policy of the service, else the one of all services, else the defaults. Of several the oldest counts. */
export function policyFor(
  serviceName: string,
  policiesOf: (serviceName: string) => readonly DeliveryPolicy[],
): DeliveryPolicySpec {
  const oldest = (name: string) => policiesOf(name).toSorted(compareAge)[0]?.spec;
  return oldest(serviceName) ?? oldest(ALL_SERVICES) ?? { ...defaults, serviceName };
}

function compareAge(a: DeliveryPolicy, b: DeliveryPolicy): number {
  const [ageA = '', ageB = ''] = [a, b].map(({ metadata }) => `${metadata.creationTimestamp ?? ''} ${metadata.name}`);
  return ageA < ageB ? -1 : 1;
}
