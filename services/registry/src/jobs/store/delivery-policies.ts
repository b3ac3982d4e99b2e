import { deliveryPolicyKind, objectNameFor } from '@rollcall/crds/kinds.ts';
import type { DeliveryPolicy } from '@rollcall/crds/types.gen.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import { collectionPath } from '@rollcall/platform/kube/resource-client.ts';
import { ALL_SERVICES } from '../../webhooks/domain/webhook-configs.ts';
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
    async fetch(serviceName) {
      const { items } = await connection.request<{ items: readonly DeliveryPolicy[] }>({
        method: 'GET',
        path: collectionPath(deliveryPolicyKind, namespace),
      });
      return choose(items, serviceName);
    },
  };
}

/** Of several policies for a service the one under its canonical name counts, else the oldest. */
function choose(policies: readonly DeliveryPolicy[], serviceName: string): Policy | undefined {
  for (const scope of [serviceName, ALL_SERVICES]) {
    const candidates = policies.filter(({ spec }) => spec.serviceName === scope);
    const policy =
      candidates.find(({ metadata }) => metadata.name === objectNameFor(scope)) ??
      candidates.toSorted((a, b) => (ageOf(a) < ageOf(b) ? -1 : 1)).at(0);
    if (policy === undefined) continue;
    const { strategy, autoDeploy, preReleases } = policy.spec;
    return { strategy, autoDeploy, preReleases };
  }
  return undefined;
}

function ageOf({ metadata }: DeliveryPolicy): string {
  return `${metadata.creationTimestamp} ${metadata.name}`;
}
