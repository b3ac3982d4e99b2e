import { runKubectl } from '@rollcall/local/kubectl.ts';
import { type ClusterNamespace, sharedCluster } from '../../support/namespace.ts';

/** What the kubelet says of a node's pods. */
interface Summary {
  readonly pods: readonly {
    readonly podRef: { readonly name: string; readonly namespace: string };
    readonly containers?: readonly {
      readonly memory?: { readonly time: string; readonly workingSetBytes?: number; readonly rssBytes?: number };
    }[];
  }[];
}

export interface PodMemory {
  readonly pod: string;
  readonly workingSetBytes: number;
  readonly rssBytes: number;
  /** When it was measured, in milliseconds since 1970. */
  readonly at: number;
}

/**
 * The memory of the containers of all pods of a namespace, as their kubelets have measured it last.
 */
export async function readMemory(namespace: ClusterNamespace): Promise<PodMemory[]> {
  const nodes = await runKubectl(sharedCluster(), ['get', 'nodes', '--output=jsonpath={.items[*].metadata.name}']);
  const summaries = await Promise.all(
    nodes.split(' ').map(async (node): Promise<Summary> => {
      const path = `/api/v1/nodes/${node}/proxy/stats/summary`;
      return JSON.parse(await runKubectl(sharedCluster(), ['get', '--raw', path]));
    }),
  );
  return summaries
    .flatMap(({ pods }) => pods)
    .flatMap(({ podRef, containers = [] }) => {
      if (podRef.namespace !== namespace.name) return [];
      const measured = containers.flatMap(({ memory }) => (memory === undefined ? [] : [memory]));
      return [
        {
          pod: podRef.name,
          workingSetBytes: sum(measured.map(({ workingSetBytes }) => workingSetBytes)),
          rssBytes: sum(measured.map(({ rssBytes }) => rssBytes)),
          at: Math.min(...measured.map(({ time }) => Date.parse(time))),
        },
      ];
    });
}

function sum(values: readonly (number | undefined)[]): number {
  return values.reduce<number>((total, value) => total + (value ?? 0), 0);
}
