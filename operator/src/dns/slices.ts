import { isDeepStrictEqual } from 'node:util';
import {
  type EndpointSlice,
  endpointSliceKind,
  SERVICE_LABEL,
  type Service,
} from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Change } from '../runtime/decision.ts';
import type { DesiredEndpoint } from './desired.ts';
import type { Port } from './target.ts';

/** As many as the controller of Kubernetes puts into one. */
const CAPACITY = 100;

export interface SlicesSnapshot {
  /** As it is on the API server. */
  readonly service: Service;
  /** The name of the Service's port. */
  readonly portName: string;
  /** Each address and port once. */
  readonly endpoints: readonly DesiredEndpoint[];
  /** Those of the Service that are ours. */
  readonly slices: readonly EndpointSlice[];
  /** By which they are ours. */
  readonly labels: Readonly<Record<string, string>>;
  /** Whether an object, whoever's, has this name. */
  readonly isTaken: (sliceName: string) => boolean;
}

/** What one slice has in common. */
interface Group {
  readonly addressType: 'IPv4' | 'IPv6';
  readonly port: Port;
  /** By address. */
  readonly endpoints: Map<string, DesiredEndpoint>;
}

interface Draft {
  readonly group: Group;
  /** Undefined: to be created. */
  readonly slice: EndpointSlice | undefined;
  readonly endpoints: DesiredEndpoint[];
}

/**
 * Makes the slices hold the endpoints, with few writes: an endpoint stays where it is, and new ones
 * go first where something is written anyway.
 */
export function planSlices(snapshot: SlicesSnapshot): Change[] {
  const { slices, service, portName } = snapshot;
  const groups = groupsOf(snapshot.endpoints);
  const drafts = groups.flatMap((group) => draftsOf(group, slices));
  const filled = drafts.filter(({ endpoints }) => endpoints.length > 0);
  const kept = new Set(filled.map(({ slice }) => slice));
  const nextName = nameFinder(snapshot);
  const applies = filled.flatMap((draft): Change[] => {
    const { slice, group } = draft;
    const content = contentOf(draft, portName);
    if (slice !== undefined && isOwnedBy(slice, service) && isDeepStrictEqual(said(slice), content)) return [];
    const manifest = { metadata: metadataOf(slice?.metadata.name ?? nextName(group), snapshot), ...content };
    return [{ action: 'apply', kind: endpointSliceKind, object: slice, manifest }];
  });
  const emptied = slices.filter((slice) => !kept.has(slice));
  return [...applies, ...emptied.map((object) => ({ action: 'delete', kind: endpointSliceKind, object }) as const)];
}

function groupsOf(endpoints: readonly DesiredEndpoint[]): Group[] {
  const groups = new Map<string, Group>();
  for (const each of endpoints) {
    const { addressType, port } = each;
    const key = `${addressType} ${port.port} ${port.appProtocol}`;
    const group = groups.get(key) ?? { addressType, port, endpoints: new Map<string, DesiredEndpoint>() };
    group.endpoints.set(each.address, each);
    groups.set(key, group);
  }
  return [...groups.values()];
}

function draftsOf(group: Group, slices: readonly EndpointSlice[]): Draft[] {
  const open = new Map(group.endpoints);
  const ofGroup = slices.filter((slice) => holds(slice, group)).toSorted(byName);
  const drafts = ofGroup.map((slice) => {
    const endpoints = addressesOf(slice).flatMap((address) => {
      const found = open.get(address);
      open.delete(address);
      return found ?? [];
    });
    const isChanged = !isDeepStrictEqual(said(slice).endpoints, endpoints.map(toEndpoint));
    return { group, slice, endpoints, isChanged };
  });
  const rest = [...open.values()].toSorted((a, b) => (a.address < b.address ? -1 : 1));
  for (const { endpoints } of drafts.toSorted((a, b) => Number(b.isChanged) - Number(a.isChanged))) {
    endpoints.push(...rest.splice(0, Math.max(0, CAPACITY - endpoints.length)));
  }
  const created: Draft[] = [];
  while (rest.length > 0) created.push({ group, slice: undefined, endpoints: rest.splice(0, CAPACITY) });
  return [...drafts, ...created];
}

function holds({ addressType, ports }: EndpointSlice, { addressType: family, port }: Group): boolean {
  const [found] = ports ?? [];
  return addressType === family && found?.port === port.port && found.appProtocol === port.appProtocol;
}

function byName(a: EndpointSlice, b: EndpointSlice): number {
  return a.metadata.name < b.metadata.name ? -1 : 1;
}

function addressesOf({ endpoints }: EndpointSlice): string[] {
  return endpoints?.flatMap(({ addresses }) => addresses[0] ?? []) ?? [];
}

function isOwnedBy({ metadata }: EndpointSlice, service: Service): boolean {
  return metadata.ownerReferences?.some(({ uid }) => uid === service.metadata.uid) === true;
}

/** What we write of a slice, as it is there. */
function said({ addressType, ports, endpoints }: EndpointSlice) {
  const known = endpoints?.map(({ addresses, conditions, zone }) => endpoint(addresses, conditions?.ready, zone));
  return { addressType, ports, endpoints: known ?? [] };
}

function contentOf({ group, endpoints }: Draft, portName: string) {
  const { port, appProtocol } = group.port;
  return {
    addressType: group.addressType,
    ports: [{ name: portName, port, protocol: 'TCP', appProtocol }],
    endpoints: endpoints.map(toEndpoint),
  };
}

function toEndpoint({ address, ready, zone }: DesiredEndpoint): object {
  return endpoint([address], ready, zone);
}

function endpoint(addresses: readonly string[], ready: boolean | undefined, zone: string | undefined): object {
  return { addresses, conditions: { ready }, ...(zone === undefined ? {} : { zone }) };
}

function metadataOf(name: string, { service, labels }: SlicesSnapshot) {
  const { apiVersion, kind, metadata } = service;
  return {
    name,
    namespace: metadata.namespace ?? 'default',
    labels: { ...labels, [SERVICE_LABEL]: metadata.name, 'endpointslice.kubernetes.io/managed-by': 'rollcall.dev' },
    ownerReferences: [{ apiVersion, kind, name: metadata.name, uid: metadata.uid ?? '' }],
  };
}

/** @returns what finds a name that nothing has, and that it has not found before. */
function nameFinder({ service, isTaken }: SlicesSnapshot): (group: Group) => string {
  const found = new Set<string>();
  return ({ addressType, port }) => {
    const prefix = `${service.metadata.name}-${addressType.toLowerCase()}-${port.port}`;
    let number = 1;
    while (found.has(`${prefix}-${number}`) || isTaken(`${prefix}-${number}`)) number += 1;
    found.add(`${prefix}-${number}`);
    return `${prefix}-${number}`;
  };
}
