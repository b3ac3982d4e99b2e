import { deliveryJobKind } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import {
  controllerRevisionKind,
  deploymentKind,
  endpointSliceKind,
  httpRouteKind,
  podKind,
} from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { isForbidden, isNotFound, KubeApiError } from '@rollcall/platform/kube/errors.ts';
import { listObjects } from '@rollcall/platform/kube/list.ts';
import { resourceClient } from '@rollcall/platform/kube/resource-client.ts';

/**
 * What is read from the API server when a job needs it: few do, or only once. All methods throw as
 * the connection does.
 */
export type DirectReads = ReturnType<typeof createDirectReads>;

export function createDirectReads(connection: KubeConnection) {
  const listDeployments = (labelSelector: string, namespace?: string) =>
    listObjects(connection, deploymentKind, { namespace, query: { labelSelector } });

  return {
    findDeployment: (namespace: string, name: string) =>
      resourceClient(connection, deploymentKind, namespace).find(name),
    /** In all namespaces when none is given. */
    listDeployments,
    /** As {@link listDeployments} of all namespaces; undefined when that is not allowed. */
    listDeploymentsIfAllowed: (labelSelector: string) => unless(listDeployments(labelSelector), isForbidden),
    findRevision: ({ metadata: { name, namespace = '' } }: DeliveryJob) =>
      resourceClient(connection, controllerRevisionKind, namespace).find(name),
    findJob: (namespace: string, name: string) => resourceClient(connection, deliveryJobKind, namespace).find(name),
    listPods: (namespace: string, labelSelector: string) =>
      listObjects(connection, podKind, { namespace, query: { labelSelector } }),
    listEndpointSlices: (namespace: string, labelSelector: string, signal: AbortSignal) =>
      listObjects(connection, endpointSliceKind, { namespace, query: { labelSelector }, signal }),
    /** Undefined where the API has no such kind. */
    listRoutes: (namespace: string) => unless(listObjects(connection, httpRouteKind, { namespace }), isNotFound),
  };
}

async function unless<T>(answer: Promise<T>, isTolerated: (error: KubeApiError) => boolean): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof KubeApiError && isTolerated(error)) return undefined;
    throw error;
  }
}
