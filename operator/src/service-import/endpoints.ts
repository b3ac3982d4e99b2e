import { isDnsLabel, isLabelValue } from '@rollcall/crds/kinds.ts';
import type { EndpointSlice, Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Desired, DesiredSpec } from './desired.ts';

/** An address behind a Service. */
interface Endpoint {
  readonly address: string;
  /** One that is about to end is not, though it may still answer. */
  readonly ready: boolean;
  readonly zone: string | undefined;
  readonly ports: NonNullable<EndpointSlice['ports']>;
}

/** By the ids that their instances have. */
export type Endpoints = ReadonlyMap<string, Endpoint>;

/** What is to be registered. */
export interface WantedRegistration {
  readonly spec: DesiredSpec;
  /** Whether it, or of a Service any of its endpoints, is ready. */
  readonly ready: boolean;
}

/**
 * The endpoints of a Service in the first of its address families, so that a pod with two addresses
 * is one. While an endpoint moves to another slice it may be in both: the ready one counts.
 */
export function endpointsOf(service: Service, slices: readonly EndpointSlice[]): Endpoints {
  const family = service.spec?.ipFamilies?.[0] ?? 'IPv4';
  const found = new Map<string, Endpoint>();
  for (const { addressType, endpoints, ports } of slices) {
    if (addressType !== family) continue;
    for (const { addresses, conditions, targetRef, zone } of endpoints ?? []) {
      const [address] = addresses;
      if (address === undefined) continue;
      const id = targetRef?.kind === 'Pod' && isDnsLabel(targetRef.name ?? '') ? targetRef.name : idOf(address);
      const ready = conditions?.ready !== false && conditions?.terminating !== true;
      const endpoint = { address, ready, zone, ports: ports ?? [] };
      if (id !== undefined && precedes(endpoint, found.get(id))) found.set(id, endpoint);
    }
  }
  return found;
}

/** By address where both are alike: the order of slices is none. */
function precedes(endpoint: Endpoint, other: Endpoint | undefined): boolean {
  if (other === undefined) return true;
  return endpoint.ready === other.ready ? endpoint.address < other.address : endpoint.ready;
}

/** Of an IPv6 address the full form: a DNS label neither begins nor ends with a hyphen. */
function idOf(address: string): string {
  if (!address.includes(':')) return address.replaceAll('.', '-');
  const [head = '', tail = ''] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const [before, after] = [groupsOf(head), groupsOf(tail)];
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return [...before, ...zeros, ...after].join('-');
}

function groupsOf(part: string): string[] {
  return part === '' ? [] : part.split(':');
}

/** One for each endpoint that has the port, in the order of their ids. */
export function wantedInstances(
  { spec, port }: Extract<Desired, { wanted: 'instances' }>,
  endpoints: Endpoints,
): WantedRegistration[] {
  return [...endpoints]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([instanceId, { address, ready, zone, ports }]) => {
      const number = ports.find(({ name, protocol = 'TCP' }) => (name ?? '') === port.name && protocol === 'TCP')?.port;
      if (number === undefined) return [];
      const url = `${port.scheme}://${address.includes(':') ? `[${address}]` : address}:${number}`;
      const where = zone !== undefined && isLabelValue(zone) ? { zone } : {};
      return [{ spec: { ...spec, ...where, instanceId, url }, ready }];
    });
}
