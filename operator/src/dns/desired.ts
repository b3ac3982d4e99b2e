import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import { ailmentOf, checkStatusOf } from '@rollcall/platform/health-words.ts';
import { type DnsZone, type Port, type Target, targetOf } from './target.ts';

/** Where one or more instances of a name are. */
export interface DesiredEndpoint {
  readonly addressType: 'IPv4' | 'IPv6';
  readonly address: string;
  readonly port: Port;
  readonly zone: string | undefined;
  readonly ready: boolean;
}

/** Why an instance, or a whole name, is not in DNS. */
export interface LeftOut {
  readonly registration: ServiceRegistration;
  readonly reason: 'NameNotPossible' | 'NameTaken' | 'AddressNotPossible' | 'HostNotPossible';
  readonly message: string;
}

/** What DNS is to say of a name. */
export interface DesiredName {
  readonly service:
    | { readonly type: 'headless'; readonly port: Port }
    | { readonly type: 'external'; readonly host: string; readonly port: Port }
    | undefined;
  /** Of a headless Service, each address and port once. */
  readonly endpoints: readonly DesiredEndpoint[];
  readonly leftOut: readonly LeftOut[];
}

const NOTHING: DesiredName = { service: undefined, endpoints: [], leftOut: [] };

/** What the API server accepts as the name of a Service (RFC 1035). */
const SERVICE_NAME = /^[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

/** An instance, and where it is. */
interface Located<T extends Target = Target> {
  readonly registration: ServiceRegistration;
  readonly target: T;
}

type At<Place extends Target['at']> = Located<Extract<Target, { at: Place }>>;

/** Whether other programs may discover the instance, and it is to be in DNS. */
export function isMirrored({ metadata, spec, status }: ServiceRegistration): boolean {
  return spec.source === 'API' && status?.phase !== 'Expired' && metadata.deletionTimestamp === undefined;
}

/** @param instances of one name, those alone that are mirrored; longest registered first. */
export function desiredName(instances: readonly ServiceRegistration[], zone: DnsZone): DesiredName {
  const [first] = instances;
  if (first === undefined) return NOTHING;
  const { serviceName } = first.spec;
  if (!SERVICE_NAME.test(serviceName)) {
    const message = `${serviceName} is no DNS label of lower-case letters, digits and hyphens that begins with a letter`;
    return { ...NOTHING, leftOut: [{ registration: first, reason: 'NameNotPossible', message }] };
  }
  const located = instances.map((registration) => ({ registration, target: targetOf(registration.spec, zone) }));
  const nowhere = located.filter(isAt('nowhere'));
  const leftOut = nowhere.map(({ registration, target: { reason, message } }) => ({ registration, reason, message }));
  const addresses = located.filter(isAt('address'));
  const hosts = located.filter(isAt('host'));
  const [representative] = addresses;
  if (representative !== undefined) {
    const service = { type: 'headless', port: representative.target.port } as const;
    const message = 'other instances have addresses, beside which DNS can hold no host name';
    return { service, endpoints: endpointsOf(addresses), leftOut: [...leftOut, ...withoutHosts(hosts, message)] };
  }
  const [host, ...others] = new Set(hosts.map(({ target }) => target.host));
  if (others.length > 0) {
    const message = 'other instances have another host name, and DNS can hold one only';
    return { ...NOTHING, leftOut: [...leftOut, ...withoutHosts(hosts, message)] };
  }
  const port = hosts[0]?.target.port;
  if (host === undefined || port === undefined) return { ...NOTHING, leftOut };
  return { service: { type: 'external', host, port }, endpoints: [], leftOut };
}

function isAt<Place extends Target['at']>(place: Place) {
  return (located: Located): located is At<Place> => located.target.at === place;
}

function withoutHosts(hosts: readonly At<'host'>[], message: string): LeftOut[] {
  return hosts.map(({ registration }) => ({ registration, reason: 'HostNotPossible', message }));
}

function endpointsOf(located: readonly At<'address'>[]): DesiredEndpoint[] {
  const healthy = new Set(located.filter(({ registration }) => isHealthy(registration)));
  const endpoints = new Map<string, DesiredEndpoint>();
  for (const each of located) {
    const { addressType, address, port } = each.target;
    const key = `${address} ${port.port} ${port.appProtocol}`;
    const known = endpoints.get(key);
    const ready = healthy.size === 0 || healthy.has(each) || known?.ready === true;
    endpoints.set(key, { addressType, address, port, zone: known?.zone ?? each.registration.spec.zone, ready });
  }
  return [...endpoints.values()];
}

function isHealthy(registration: ServiceRegistration): boolean {
  return ailmentOf(registration.status?.health?.status, checkStatusOf(registration)?.status) === undefined;
}

/**
 * Orders instances of one name by how long they have been registered, the longest first. Of the same
 * second the first instance of the name comes first (docs/decisions/0300).
 */
export function byRegistration(a: ServiceRegistration, b: ServiceRegistration): number {
  return ageOf(a) < ageOf(b) ? -1 : 1;
}

function ageOf({ metadata, spec, status }: ServiceRegistration): string {
  const rank = spec.serviceId === undefined ? 'first' : 'further';
  return `${status?.registeredAt ?? metadata.creationTimestamp ?? ''} ${rank} ${metadata.uid ?? ''}`;
}
