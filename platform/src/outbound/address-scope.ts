import { isIP } from 'node:net';
import ipaddr, { type IPv4, type IPv6 } from 'ipaddr.js';

/**
 * Where an IP address leads.
 *
 * - `public`: to a machine of the internet.
 * - `private`: to a machine of one's own network, such as a pod.
 * - `special`: to this machine, to its link (where clouds answer with credentials), to a group, or
 *   nowhere that is known.
 */
export type AddressScope = 'public' | 'private' | 'special';

/**
 * What the registers of special addresses (IANA) do not say. The first that holds an address
 * decides.
 */
const EXCEPTIONS = (
  [
    ['100.100.100.200/32', 'special'], // Alibaba Cloud: metadata, amid private addresses
    ['168.63.129.16/32', 'special'], // Azure: the host agent, amid public addresses
    ['255.255.255.255/32', 'special'], // broadcast
    ['198.18.0.0/15', 'private'], // benchmarks
    ['240.0.0.0/4', 'private'], // reserved; pods of some clusters
    ['fd00:ec2::/32', 'special'], // AWS: metadata and other services of the link
    ['fd20:ce::254/128', 'special'], // Google Cloud: metadata
  ] as const
).map(([network, scope]) => ({ network: ipaddr.parseCIDR(network), scope }));

const SCOPES: ReadonlyMap<string, AddressScope> = new Map([
  ['unicast', 'public'],
  ['private', 'private'],
  ['carrierGradeNat', 'private'],
  ['uniqueLocal', 'private'],
] as const);

/** The only part of IPv6 that is given out to machines of the internet. */
const GLOBAL_IPV6 = ipaddr.parseCIDR('2000::/3');

/**
 * An IPv4 address follows, to which the packets go in the end: how IPv6-only machines reach every
 * one.
 */
const NAT64 = ipaddr.parseCIDR('64:ff9b::/96');

/**
 * The scope of an IPv4 or IPv6 address in its usual spelling (a zone such as `%eth0` may follow).
 * IPv4-mapped and NAT64 addresses are what the IPv4 address in them is. Whatever is no address is
 * `special`, and so is what nobody has assigned.
 */
export function addressScope(address: string): AddressScope {
  // The library also reads addresses such as 0x7f.1, which other resolvers do not.
  if (isIP(address) === 0) return 'special';
  const parsed = destinationOf(ipaddr.parse(address));
  const exception = EXCEPTIONS.find(({ network }) => network[0].kind() === parsed.kind() && parsed.match(network));
  if (exception !== undefined) return exception.scope;
  const scope = SCOPES.get(parsed.range()) ?? 'special';
  const isUnassigned = scope === 'public' && parsed.kind() === 'ipv6' && !parsed.match(GLOBAL_IPV6);
  return isUnassigned ? 'special' : scope;
}

/**
 * Whether the address is one of the internet: no request that somebody else chose may go elsewhere
 * unasked.
 */
export function isPublicAddress(address: string): boolean {
  return addressScope(address) === 'public';
}

/** Whether the address is this machine's own, which no packet leaves. */
export function isLoopbackAddress(address: string): boolean {
  // `process` undoes the IPv4-mapped form alone: what stands for NAT64 is sent to a router.
  return isIP(address) !== 0 && ipaddr.process(address).range() === 'loopback';
}

/** The IPv4 address that an IPv6 address stands for, or the address itself. */
function destinationOf(address: IPv4 | IPv6): IPv4 | IPv6 {
  if (!('parts' in address)) return address;
  if (address.isIPv4MappedAddress()) return address.toIPv4Address();
  return address.match(NAT64) ? new ipaddr.IPv4(address.toByteArray().slice(12)) : address;
}
