import { oldest } from '@rollcall/crds/effective-policy.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import { objectKey } from '@rollcall/platform/kube/store.ts';
import { serviceNameOf } from '../delivery/observe/indexes.ts';
import type { DeliveryInformers } from '../delivery/observe/informers.ts';
import type { Reconciler } from '../runtime/controller.ts';
import { type PolicySnapshot, planPolicy } from './plan.ts';

export interface PolicyReconcilerDeps {
  readonly informers: Pick<DeliveryInformers, 'policies' | 'deployments'>;
  readonly concurrency: number;
  readonly clock: Clock;
}

/** Says in the status of each policy whether jobs go by it. */
export function policyReconciler({ informers, concurrency, clock }: PolicyReconcilerDeps): Reconciler<PolicySnapshot> {
  const { policies, deployments } = informers;
  const runs = (serviceName: string) =>
    deployments.some(({ store }) => [...store.values()].some((one) => serviceNameOf(one) === serviceName));
  return {
    name: 'delivery-policy',
    concurrency,
    keys: () => [...policies.store.values()].map(objectKey),
    observe(key) {
      const policy = policies.store.get(key);
      if (policy === undefined) return undefined;
      const { serviceName } = policy.spec;
      const rivals = [...policies.store.values()].filter(({ spec }) => spec.serviceName === serviceName);
      return { policy, effective: oldest(rivals) ?? policy, hasDeployment: runs(serviceName), now: clock.now() };
    },
    plan: planPolicy,
  };
}

/** Calls back with every policy whose use may be another than before. */
export function watchPolicies(
  { policies, deployments }: PolicyReconcilerDeps['informers'],
  enqueue: (policyKey: string) => void,
): void {
  const enqueueOf = (serviceName: string | undefined) => {
    for (const policy of policies.store.values()) {
      if (policy.spec.serviceName === serviceName) enqueue(objectKey(policy));
    }
  };
  policies.onChange(({ object }) => enqueueOf(object.spec.serviceName));
  for (const informer of deployments) {
    informer.onChange((change) => {
      // Whether a service has a Deployment changes with these alone, and Deployments change with
      // every pod.
      const before = change.type === 'modified' ? serviceNameOf(change.previous) : undefined;
      const name = serviceNameOf(change.object);
      if (change.type === 'modified' && before === name) return;
      enqueueOf(name);
      if (before !== undefined) enqueueOf(before);
    });
  }
}
