import type { Clock } from '@rollcall/platform/clock.ts';
import { type EndpointSlice, SERVICE_LABEL } from '@rollcall/platform/kube/builtin-kinds.ts';
import { isForbidden, isUnavailable } from '@rollcall/platform/kube/errors.ts';
import type { EndpointsAnswer, ServiceEndpoints } from '../job/snapshot.ts';
import type { DirectReads } from './direct-reads.ts';
import { createReadCache } from './read-cache.ts';

/** A job is observed with every event of its pods. */
const MAX_AGE_MS = 500;
/** Writes wait behind it. */
const LIST_TIMEOUT_MS = 2000;
/**
 * Slices that Kubernetes makes of a Service's selector. Others have the same name in their label,
 * and what is in them no pin moves: a mesh puts the pods of other clusters there.
 */
const OWN_SLICES = 'endpointslice.kubernetes.io/managed-by=endpointslice-controller.k8s.io';

type Endpoint = NonNullable<EndpointSlice['endpoints']>[number];

/**
 * What EndpointSlices say of Services, which few jobs ask for and none for long: half a second old
 * at most.
 */
export type EndpointCache = ReturnType<typeof createEndpointCache>;

export function createEndpointCache(reads: Pick<DirectReads, 'listEndpointSlices'>, clock: Pick<Clock, 'monotonicMs'>) {
  const recent = createReadCache<EndpointsAnswer>(clock, MAX_AGE_MS);
  return {
    /** By the names of the Services. @throws as the API server's client. */
    list: (namespace: string, services: readonly string[]): Promise<EndpointsAnswer> =>
      recent.get(`${namespace}/${services.join(',')}`, async () => {
        const selector = `${SERVICE_LABEL} in (${services.join(',')}),${OWN_SLICES}`;
        try {
          const slices = await reads.listEndpointSlices(namespace, selector, AbortSignal.timeout(LIST_TIMEOUT_MS));
          return readyPods(slices, services);
        } catch (error) {
          if (isForbidden(error)) return 'forbidden';
          // Traffic can be moved, and moved back, all the same.
          if (isUnavailable(error)) return 'unknown';
          throw error;
        }
      }),
  };
}

function readyPods(slices: readonly EndpointSlice[], services: readonly string[]): ServiceEndpoints {
  const pods = new Map(services.map((name) => [name, new Set<string>()]));
  for (const { metadata, endpoints } of slices) {
    const found = pods.get(metadata.labels?.[SERVICE_LABEL] ?? '');
    for (const endpoint of endpoints ?? []) {
      // Whatever else somebody has put behind a Service is no business of a delivery's.
      if (isServing(endpoint) && endpoint.targetRef?.kind === 'Pod') found?.add(endpoint.targetRef.name ?? '');
    }
  }
  return pods;
}

/**
 * Where a Service publishes addresses that are not ready, pods stay ready until they have ended:
 * what ends is not among a group's pods.
 */
function isServing({ conditions }: Endpoint): boolean {
  return conditions?.ready !== false && conditions?.terminating !== true;
}
