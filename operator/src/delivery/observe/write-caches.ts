import { deliveryJobKind, labels } from '@rollcall/crds/kinds.ts';
import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import { type Deployment, deploymentKind, type Service, serviceKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Informer } from '@rollcall/platform/kube/informer.ts';
import type { KubeObject } from '@rollcall/platform/kube/resource-client.ts';
import type { WriteCache } from '../../runtime/apply.ts';
import type { DeliveryInformers } from './informers.ts';

/**
 * Makes what jobs write visible to the next observation.
 *
 * @param services every copy of Services that anybody keeps.
 */
export function deliveryWriteCaches(
  informers: DeliveryInformers,
  services: readonly Informer<Service>[],
): readonly WriteCache[] {
  return [
    { kind: deliveryJobKind, informer: informers.jobs },
    deploymentCache(informers),
    writeCache<Service>(serviceKind, [{ informers: services, holds: () => true }]),
  ];
}

export function deploymentCache({ deployments, extraDeployments }: DeliveryInformers): WriteCache {
  return writeCache<Deployment>(deploymentKind, [
    { informers: deployments, holds: isLabelled(labels.service) },
    { informers: extraDeployments, holds: isLabelled(labels.job) },
  ]);
}

const isLabelled = (name: string) => (object: KubeObject) => object.metadata.labels?.[name] !== undefined;

interface Part<T extends KubeObject> {
  readonly informers: readonly Informer<T>[];
  /**
   * Whether the labels are those of the informers' selector: no event would ever remove another
   * object from them.
   */
  readonly holds: (object: T) => boolean;
}

/** One cache of several that each hold a part of the kind. */
function writeCache<T extends KubeObject>(kind: ResourceKind<T>, parts: readonly Part<T>[]): WriteCache {
  const holders = (object: T) =>
    parts
      .filter(({ holds }) => holds(object))
      .flatMap(({ informers }) => informers)
      .filter(({ namespace }) => namespace === undefined || namespace === object.metadata.namespace);
  return {
    kind,
    informer: {
      recordWrite(object: T) {
        for (const informer of holders(object)) informer.recordWrite(object);
      },
      recordDelete(object: T) {
        for (const { informers } of parts) for (const informer of informers) informer.recordDelete(object);
      },
    },
  };
}
