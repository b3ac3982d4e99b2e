import { deliveryJobKind } from '@rollcall/crds/kinds.ts';
import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import {
  type ControllerRevision,
  controllerRevisionKind,
  type Deployment,
  deploymentKind,
  type EndpointSlice,
  endpointSliceKind,
  type HttpRoute,
  httpRouteKind,
  type Pod,
  podKind,
} from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { isForbidden, isNotFound, KubeApiError } from '@rollcall/platform/kube/errors.ts';
import { collectionPath, type KubeObject, resourceClient } from '@rollcall/platform/kube/resource-client.ts';

/**
 * What is read from the API server when a job needs it: few do, or only once. All methods throw as
 * the connection does.
 */
export interface DirectReads {
  findDeployment(namespace: string, name: string): Promise<Deployment | undefined>;
  /** In all namespaces when none is given. */
  listDeployments(labelSelector: string, namespace?: string): Promise<readonly Deployment[]>;
  /** As {@link listDeployments} of all namespaces; undefined when that is not allowed. */
  listDeploymentsIfAllowed(labelSelector: string): Promise<readonly Deployment[] | undefined>;
  findRevision(job: DeliveryJob): Promise<ControllerRevision | undefined>;
  findJob(namespace: string, name: string): Promise<DeliveryJob | undefined>;
  listPods(namespace: string, labelSelector: string): Promise<readonly Pod[]>;
  listEndpointSlices(namespace: string, labelSelector: string, signal?: AbortSignal): Promise<readonly EndpointSlice[]>;
  /** Undefined where the API has no such kind. */
  listRoutes(namespace: string): Promise<readonly HttpRoute[] | undefined>;
}

interface ListScope {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly signal?: AbortSignal;
}

export function createDirectReads(connection: KubeConnection): DirectReads {
  async function list<T extends KubeObject>(
    kind: ResourceKind<T>,
    { namespace, labelSelector, ...limits }: ListScope,
  ): Promise<readonly T[]> {
    const path = collectionPath(kind, namespace);
    const { items } = await connection.request<{ readonly items: readonly T[] }>({
      method: 'GET',
      path,
      query: { labelSelector },
      ...limits,
    });
    // Lists leave out what all of their items have in common.
    return items.map((item) => ({ ...item, apiVersion: kind.apiVersion, kind: kind.kind }));
  }

  const listDeployments = (labelSelector: string, namespace?: string) =>
    list(deploymentKind, { labelSelector, ...(namespace === undefined ? {} : { namespace }) });

  return {
    findDeployment: (namespace, name) => resourceClient(connection, deploymentKind, namespace).find(name),
    listDeployments,
    listDeploymentsIfAllowed: (labelSelector) => unless(listDeployments(labelSelector), isForbidden),
    findRevision: ({ metadata: { name, namespace = '' } }) =>
      resourceClient(connection, controllerRevisionKind, namespace).find(name),
    findJob: (namespace, name) => resourceClient(connection, deliveryJobKind, namespace).find(name),
    listPods: (namespace, labelSelector) => list(podKind, { namespace, labelSelector }),
    listEndpointSlices: (namespace, labelSelector, signal) =>
      list(endpointSliceKind, { namespace, labelSelector, ...(signal === undefined ? {} : { signal }) }),
    listRoutes: (namespace) => unless(list(httpRouteKind, { namespace }), isNotFound),
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
