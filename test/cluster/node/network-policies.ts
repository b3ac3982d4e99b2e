import type { ObjectMeta } from '@rollcall/crds/object-meta.ts';
import type { Namespace, NetworkPolicy, NetworkPolicyPort, Peer, PolicyPod, Selector } from './policy-objects.ts';

/** All that decides who may connect to whom. */
export interface PolicySources {
  readonly policies: readonly NetworkPolicy[];
  readonly pods: readonly PolicyPod[];
  readonly namespaces: readonly Namespace[];
}

type Direction = 'ingress' | 'egress';

/** A pod that has an address of its own. */
interface AddressedPod {
  readonly pod: PolicyPod;
  readonly address: string;
}

/** The other end of a connection; undefined fields: any. */
interface Match {
  /** Addresses or blocks, as they are written in a set; undefined: all. */
  readonly addresses: readonly string[] | undefined;
  readonly except?: readonly string[];
  /** Such as `tcp dport 80`; empty: all. */
  readonly ports: string;
}

const TABLE = 'inet network-policies';

/**
 * The NetworkPolicies as one nftables table for the network namespace of the only node, IPv4 alone;
 * loading it replaces the one before it in one step. A pod that policies select gets a chain for
 * the direction, which returns what one of them allows and drops the rest. What belongs to an
 * allowed connection passes, and so does whatever comes from the node itself, as everywhere.
 */
export function rulesetOf(sources: PolicySources): string {
  const pods = sources.pods.flatMap(addressed);
  const ingress = chainsOf('ingress', pods, sources);
  const egress = chainsOf('egress', pods, sources);
  const jumps = {
    ingress: jumpsOf('ingress', [...ingress.keys()]),
    egress: jumpsOf('egress', [...egress.keys()]),
  };
  return [
    // A table that is not there cannot be deleted.
    `table ${TABLE}`,
    `delete table ${TABLE}`,
    `table ${TABLE} {`,
    ...[...ingress.values(), ...egress.values()].flat(),
    ...hook('forward', [...jumps.egress, ...jumps.ingress]),
    // What pods send to the node, to the API server for instance, is not forwarded.
    ...hook('input', jumps.egress),
    '}',
    '',
  ].join('\n');
}

/**
 * Before the filters of kube-proxy, and after it has replaced a Service's address by a pod's.
 */
function hook(name: 'forward' | 'input', jumps: readonly string[]): string[] {
  return [
    `  chain ${name} {`,
    `    type filter hook ${name} priority -5; policy accept;`,
    '    ct state established,related accept',
    ...jumps,
    '  }',
  ];
}

function jumpsOf(direction: Direction, addresses: readonly string[]): string[] {
  if (addresses.length === 0) return [];
  const elements = addresses.map((address) => `${address} : jump ${chainName(direction, address)}`);
  return [`    ip ${direction === 'ingress' ? 'daddr' : 'saddr'} vmap { ${elements.join(', ')} }`];
}

function chainName(direction: Direction, address: string): string {
  return `${direction}-${address.replaceAll('.', '-')}`;
}

/** Chains by the addresses of the pods that policies of the direction select. */
function chainsOf(
  direction: Direction,
  pods: readonly AddressedPod[],
  sources: PolicySources,
): Map<string, readonly string[]> {
  const chains = new Map<string, readonly string[]>();
  for (const subject of pods) {
    const policies = sources.policies.filter(
      (policy) => typesOf(policy).includes(direction) && selects(policy, subject.pod),
    );
    if (policies.length === 0) continue;
    const matches = policies.flatMap((policy) => matchesOf(direction, policy, { subject, pods, sources }));
    chains.set(subject.address, [
      `  chain ${chainName(direction, subject.address)} {`,
      // By way of a Service; nobody can shut a pod off from itself.
      `    ip saddr ${subject.address} ip daddr ${subject.address} return`,
      ...new Set(matches.map((match) => `    ${ruleOf(direction, match)}`)),
      '    drop',
      '  }',
    ]);
  }
  return chains;
}

function typesOf({ spec }: NetworkPolicy): Direction[] {
  const given = spec.policyTypes ?? ['Ingress', ...((spec.egress ?? []).length > 0 ? ['Egress' as const] : [])];
  return given.map((type) => (type === 'Ingress' ? 'ingress' : 'egress'));
}

function selects({ metadata, spec }: NetworkPolicy, pod: PolicyPod): boolean {
  return metadata.namespace === pod.metadata.namespace && matchesSelector(spec.podSelector, pod.metadata);
}

interface Scene {
  readonly subject: AddressedPod;
  readonly pods: readonly AddressedPod[];
  readonly sources: PolicySources;
}

function matchesOf(direction: Direction, policy: NetworkPolicy, scene: Scene): Match[] {
  const rules =
    direction === 'ingress'
      ? (policy.spec.ingress ?? []).map(({ from, ports }) => ({ peers: from, ports }))
      : (policy.spec.egress ?? []).map(({ to, ports }) => ({ peers: to, ports }));
  return rules.flatMap(({ peers, ports }) =>
    // Neither peers nor ports: all.
    (orAll(peers) ?? [undefined]).flatMap((peer) =>
      (orAll(ports) ?? [undefined]).flatMap((port) => {
        const named = typeof port?.port === 'string' ? port.port : undefined;
        if (named === undefined)
          return othersOf(peer, policy, scene).map((other) => ({ ...other, ports: portsOf(port) }));
        return direction === 'ingress'
          ? namedIngress(othersOf(peer, policy, scene), { name: named, protocol: protocolOf(port) }, scene.subject)
          : namedEgress(podsOf(peer, policy, scene), { name: named, protocol: protocolOf(port) });
      }),
    ),
  );
}

/** An empty list means the same as none. */
function orAll<T>(list: readonly T[] | undefined): readonly T[] | undefined {
  return list === undefined || list.length === 0 ? undefined : list;
}

interface NamedPort {
  readonly name: string;
  readonly protocol: string;
}

/** The subject says which number the name stands for. */
function namedIngress(others: readonly Omit<Match, 'ports'>[], port: NamedPort, { pod }: AddressedPod): Match[] {
  const numbers = numbersOf(port, pod);
  return numbers.flatMap((number) => others.map((other) => ({ ...other, ports: `${port.protocol} dport ${number}` })));
}

/** Each of the others has a number of its own for the name. */
function namedEgress(others: readonly AddressedPod[], port: NamedPort): Match[] {
  const byNumber = Map.groupBy(
    others.flatMap(({ pod, address }) => numbersOf(port, pod).map((number) => ({ number, address }))),
    ({ number }) => number,
  );
  return [...byNumber].map(([number, found]) => ({
    addresses: found.map(({ address }) => address),
    ports: `${port.protocol} dport ${number}`,
  }));
}

function numbersOf({ name, protocol }: NamedPort, { spec }: PolicyPod): number[] {
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always');
  const ports = [...spec.containers, ...sidecars].flatMap((container) => container.ports ?? []);
  return ports.flatMap((port) => (port.name === name && protocolOf(port) === protocol ? [port.containerPort] : []));
}

/** What a peer stands for, or nothing where that is nobody. */
function othersOf(peer: Peer | undefined, policy: NetworkPolicy, scene: Scene): Omit<Match, 'ports'>[] {
  if (peer === undefined) return [{ addresses: undefined }];
  if (peer.ipBlock !== undefined) {
    const { cidr, except = [] } = peer.ipBlock;
    return isIpv4(cidr) ? [{ addresses: [cidr], except: except.filter(isIpv4) }] : [];
  }
  const addresses = podsOf(peer, policy, scene).map(({ address }) => address);
  return addresses.length === 0 ? [] : [{ addresses }];
}

/** The pods that a peer stands for; a block stands for none. */
function podsOf(peer: Peer | undefined, policy: NetworkPolicy, { pods, sources }: Scene): AddressedPod[] {
  if (peer === undefined) return [...pods];
  if (peer.ipBlock !== undefined) return [];
  const { namespaceSelector, podSelector = {} } = peer;
  const namespaces =
    namespaceSelector === undefined
      ? [policy.metadata.namespace]
      : sources.namespaces
          .filter(({ metadata }) => matchesSelector(namespaceSelector, metadata))
          .map(({ metadata }) => metadata.name);
  return pods.filter(
    ({ pod }) => namespaces.includes(pod.metadata.namespace) && matchesSelector(podSelector, pod.metadata),
  );
}

function isIpv4(block: string): boolean {
  return !block.includes(':');
}

function protocolOf(port: { readonly protocol?: string } | undefined): string {
  return (port?.protocol ?? 'TCP').toLowerCase();
}

/** Of a port that has no name. */
function portsOf(port: NetworkPolicyPort | undefined): string {
  if (port === undefined) return '';
  if (port.port === undefined) return `meta l4proto ${protocolOf(port)}`;
  return `${protocolOf(port)} dport ${port.port}${port.endPort === undefined ? '' : `-${port.endPort}`}`;
}

function ruleOf(direction: Direction, { addresses, except = [], ports }: Match): string {
  const other = direction === 'ingress' ? 'ip saddr' : 'ip daddr';
  return [
    ...(addresses === undefined ? [] : [`${other} { ${addresses.join(', ')} }`]),
    // One by one, as blocks in a set must not overlap.
    ...except.map((block) => `${other} != ${block}`),
    ...(ports === '' ? [] : [ports]),
    'return',
  ].join(' ');
}

/** Pods in the node's own network are the node. */
function addressed(pod: PolicyPod): AddressedPod[] {
  const { phase, podIP } = pod.status ?? {};
  if (podIP === undefined || pod.spec.hostNetwork === true || phase === 'Succeeded' || phase === 'Failed') return [];
  return [{ pod, address: podIP }];
}

/** Whether the labels are as the selector wants them; an empty one wants nothing. */
function matchesSelector({ matchLabels = {}, matchExpressions = [] }: Selector, { labels = {} }: ObjectMeta): boolean {
  const wanted = Object.entries(matchLabels).map(([key, value]) => ({ key, operator: 'In' as const, values: [value] }));
  return [...wanted, ...matchExpressions].every(({ key, operator, values = [] }) => {
    const value = labels[key];
    if (operator === 'Exists') return value !== undefined;
    if (operator === 'DoesNotExist') return value === undefined;
    const isOne = value !== undefined && values.includes(value);
    return operator === 'In' ? isOne : !isOne;
  });
}
