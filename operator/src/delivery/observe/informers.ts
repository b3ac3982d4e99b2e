import { deliveryJobKind, deliveryPolicyKind, labels } from '@rollcall/crds/kinds.ts';
import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import { deploymentKind, podKind, replicaSetKind, type Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { createInformer, type Informer } from '@rollcall/platform/kube/informer.ts';
import type { KubeObject } from '@rollcall/platform/kube/resource-client.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { FIELD_MANAGER } from '../../runtime/field-manager.ts';
import { type DigestedReplicaSet, trimDeployment, trimJob, trimPod, trimReplicaSet } from './trim-workloads.ts';

/**
 * Every unfinished job is observed again this often, in case a change was acted on wrongly or not
 * at all.
 */
const RESYNC_MS = 600_000;

/**
 * Local copies of all that a delivery rests on, but for what only few jobs need: HTTPRoutes and
 * what jobs have saved.
 */
export type DeliveryInformers = ReturnType<typeof createDeliveryInformers>;

export interface DeliveryInformersDeps {
  readonly connection: KubeConnection;
  /** Of the custom resources. */
  readonly namespace: string;
  /** Where Deployments may be delivered to; none: everywhere. */
  readonly namespaces: readonly string[];
  /** Shared with whoever else follows Services; they may hold Services of other namespaces too. */
  readonly services: readonly Informer<Service>[];
  readonly clock: Clock;
  readonly log: Logger;
}

export function createDeliveryInformers(deps: DeliveryInformersDeps) {
  const { connection, clock, log, namespace } = deps;
  const common = { connection, clock, log, ownFieldsOf: FIELD_MANAGER };
  const scopes = deps.namespaces.length === 0 ? [{}] : deps.namespaces.map((name) => ({ namespace: name }));

  function everywhere<T extends KubeObject>(
    kind: ResourceKind<T>,
    options: { readonly transform: (object: T) => T; readonly labelSelector?: string },
  ): Informer<T>[] {
    return scopes.map((scope) => createInformer({ ...common, ...scope, kind, ...options }));
  }

  const digested: ResourceKind<DigestedReplicaSet> = replicaSetKind;
  return {
    jobs: createInformer({ ...common, kind: deliveryJobKind, namespace, transform: trimJob, resyncMs: RESYNC_MS }),
    policies: createInformer({ ...common, kind: deliveryPolicyKind, namespace }),
    /**
     * Those labelled with a service. Of these and the following there is one per namespace, or a
     * single one of all.
     */
    deployments: everywhere(deploymentKind, { transform: trimDeployment, labelSelector: labels.service }),
    /** Objects that jobs made. */
    extraDeployments: everywhere(deploymentKind, { transform: trimDeployment, labelSelector: labels.job }),
    replicaSets: everywhere(digested, { transform: trimReplicaSet }),
    pods: everywhere(podKind, { transform: trimPod }),
    services: deps.services,
  };
}
