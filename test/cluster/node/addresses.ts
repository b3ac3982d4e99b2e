/** How many nodes there can be on one machine at the same time. */
export const MAX_NODES = 64;

/**
 * The ranges that nodes take their addresses from. The host has a route for each that makes it
 * unreachable, so that a request to a node that is not up ends here and never follows the default
 * route off the machine; see network.ts.
 */
export const GUARDED_RANGES = ['10.203.0.0/16', '10.244.0.0/16', '10.96.0.0/16'] as const;

/** Names and addresses of one node; no two nodes have any in common. */
export interface NodeAddresses {
  readonly id: number;
  /** The host's end of the link to the node. */
  readonly link: string;
  /** Name of the node's cgroups. */
  readonly cgroup: string;
  /** The host, as the node and its pods see it. */
  readonly host: string;
  readonly node: string;
  readonly podRange: string;
  readonly serviceRange: string;
  /** The API server, as pods see it: the first address for Services. */
  readonly apiServer: string;
  readonly dns: string;
}

/** @param id from 0 to MAX_NODES - 1. */
export function nodeAddresses(id: number): NodeAddresses {
  // 1,022 Services each.
  const services = `10.96.${4 * id}`;
  return {
    id,
    link: `vkn${id}`,
    cgroup: `kn${id}`,
    host: `10.203.${id}.1`,
    node: `10.203.${id}.2`,
    podRange: `10.244.${id}.0/24`,
    serviceRange: `${services}.0/22`,
    apiServer: `${services}.1`,
    dns: `${services}.10`,
  };
}
