import { isLabelValue, labels } from '@rollcall/crds/kinds.ts';
import type { WorkloadReference } from '@rollcall/crds/types.gen.ts';
import type { Deployment } from '@rollcall/platform/kube/builtin-kinds.ts';
import { objectKey } from '@rollcall/platform/kube/store.ts';
import type { WorkloadView } from '../job/snapshot.ts';
import type { DirectReads } from './direct-reads.ts';
import { type Indexes, serviceNameOf } from './indexes.ts';

/** What is found by a service's name. */
type FoundByName =
  | Extract<WorkloadView, { found: 'none' | 'forbidden' | 'many' }>
  | { readonly found: 'one'; readonly deployment: Deployment };

export interface WorkloadFinderDeps {
  readonly indexes: Indexes;
  readonly reads: DirectReads;
  /** Where Deployments may be delivered to; none: everywhere. */
  readonly namespaces: readonly string[];
  /** Puts what was read into the copy. */
  readonly record: (deployment: Deployment) => void;
}

/** Finds the Deployment that a job is about. */
export type WorkloadFinder = ReturnType<typeof createWorkloadFinder>;

export function createWorkloadFinder({ indexes, reads, namespaces, record }: WorkloadFinderDeps) {
  async function read(serviceName: string): Promise<readonly Deployment[]> {
    const selector = selectorOf(serviceName);
    const scopes = namespaces.length === 0 ? [undefined] : namespaces;
    const lists = await Promise.all(scopes.map((namespace) => reads.listDeployments(selector, namespace)));
    const found = lists.flat();
    for (const deployment of found) record(deployment);
    return found;
  }

  async function findForbidden(serviceName: string): Promise<FoundByName> {
    if (namespaces.length === 0) return { found: 'none' };
    const everywhere = (await reads.listDeploymentsIfAllowed(selectorOf(serviceName))) ?? [];
    const [first] = runningService(everywhere, serviceName);
    return first === undefined
      ? { found: 'none' }
      : { found: 'forbidden', namespace: first.metadata.namespace ?? 'default' };
  }

  return {
    /**
     * The API server is asked before it is said that there is none, or more than one: the copy may be
     * behind, and the job would end.
     */
    async findByName(serviceName: string): Promise<FoundByName> {
      const known = runningService(indexes.deployments.get(serviceName), serviceName);
      const certain = known.length === 1 ? known : runningService(await read(serviceName), serviceName);
      const [deployment] = certain;
      if (deployment === undefined) return findForbidden(serviceName);
      return certain.length === 1
        ? { found: 'one', deployment }
        : { found: 'many', names: certain.map(objectKey).toSorted() };
    },
    /** The one that the job began with, whatever its labels are by now; undefined when it is gone. */
    async findByReference({ namespace, name, uid }: WorkloadReference): Promise<Deployment | undefined> {
      const known = indexes.deploymentsByUid.get(uid).find(isThere);
      if (known !== undefined) return known;
      const current = await reads.findDeployment(namespace, name);
      return current?.metadata.uid === uid && isThere(current) ? current : undefined;
    },
  };
}

function runningService(deployments: readonly Deployment[], serviceName: string): Deployment[] {
  return deployments.filter((deployment) => serviceNameOf(deployment) === serviceName && isThere(deployment));
}

/** One that waits for its pods to go counts as gone. */
function isThere({ metadata }: Deployment): boolean {
  return metadata.deletionTimestamp === undefined;
}

/** A name that is no legal label value stands in an annotation, and the label is `"true"`. */
function selectorOf(serviceName: string): string {
  return `${labels.service}=${isLabelValue(serviceName) ? serviceName : 'true'}`;
}
