import { effectivePolicy } from '@rollcall/crds/effective-policy.ts';
import { deliveryPolicyKind } from '@rollcall/crds/kinds.ts';
import type { DeliveryPolicy } from '@rollcall/crds/types.gen.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import { listObjects } from '@rollcall/platform/kube/list.ts';
import type { Policy, PolicyStore } from '../domain/automatic-deployment.ts';

export interface DeliveryPoliciesDeps {
  readonly connection: KubeConnection;
  readonly namespace: string;
  readonly informer: Pick<Informer<DeliveryPolicy>, 'store'>;
}

/** Policies as custom resources. */
export function createDeliveryPolicies({ connection, namespace, informer }: DeliveryPoliciesDeps): PolicyStore {
  return {
    find: (serviceName) => choose([...informer.store.values()], serviceName),
    fetch: async (serviceName) => choose(await listObjects(connection, deliveryPolicyKind, { namespace }), serviceName),
  };
}

function choose(policies: readonly DeliveryPolicy[], serviceName: string): Policy | undefined {
  return effectivePolicy(serviceName, (name) => policies.filter(({ spec }) => spec.serviceName === name))?.spec;
}
