import { effectivePolicy } from '@rollcall/crds/effective-policy.ts';
import type { DeliveryPolicy, DeliveryPolicySpec } from '@rollcall/crds/types.gen.ts';

/** What is used without any policy: the defaults of the custom resource. */
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

/** The policy of the service, else the one of all services, else the defaults. */
export function policyFor(
  serviceName: string,
  policiesOf: (serviceName: string) => readonly DeliveryPolicy[],
): DeliveryPolicySpec {
  return effectivePolicy(serviceName, policiesOf)?.spec ?? { ...defaults, serviceName };
}
