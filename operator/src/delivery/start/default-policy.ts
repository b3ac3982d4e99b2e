import { effectivePolicy } from '@rollcall/crds/effective-policy.ts';
import type { DeliveryPolicy, DeliveryPolicySpec } from '@rollcall/crds/types.gen.ts';
import type { Deployment } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { SettledPolicy } from '../job/snapshot.ts';
import { DEFAULT_DEADLINE_SECONDS, MOST_DEADLINE_SECONDS } from '../workload/rollout.ts';

/** What is used without any policy: the defaults of the custom resource. */
const defaults: Omit<DeliveryPolicySpec, 'serviceName'> = {
  strategy: 'Rolling',
  rolling: { bakeSeconds: 5 },
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

/** What Kubernetes puts into a Deployment that does not say it. */
const KUBERNETES_DEFAULT = '25%';

/**
 * A policy in which the Deployment has said what the policy itself leaves to it; without one,
 * Kubernetes' defaults.
 */
export function settlePolicy(policy: DeliveryPolicySpec, deployment: Deployment | undefined): SettledPolicy {
  const { strategy, progressDeadlineSeconds = DEFAULT_DEADLINE_SECONDS } = deployment?.spec ?? {};
  const { maxSurge = KUBERNETES_DEFAULT, maxUnavailable = KUBERNETES_DEFAULT } = strategy?.rollingUpdate ?? {};
  return {
    ...policy,
    rolling: {
      maxSurge,
      maxUnavailable,
      // A Deployment may have no deadline; a job has one.
      progressDeadlineSeconds: Math.min(progressDeadlineSeconds, MOST_DEADLINE_SECONDS),
      ...policy.rolling,
    },
  };
}
