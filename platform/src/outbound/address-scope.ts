import { BlockList, isIP } from 'node:net';

/**
 * Where an IP address leads.
 *
 * - `public`: to a machine of the internet.
 * - `private`: to a machine of one's own network, such as a pod.
 * - `special`: to this machine, to its link (where clouds answer with credentials), to a group, or nowhere that is known.
 */
export type AddressScope = 'public' | 'private' | 'special';

const special4 = subnets('ipv4', [
  '0.0.0.0/8', // this network; Linux takes it for loopback
  '100.100.100.200/32', // Alibaba Cloud: metadata, amid private addresses
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // Azure: the host agent, amid public addresses
  '169.254.0.0/16', // link-local; metadata of most clouds
  '192.0.0.0/24', // protocol assignments; Oracle Cloud: metadata
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // 6to4 relays, deprecated
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '255.255.255.255/32', // broadcast
]);

const private4 = subnets('ipv4', [
  '10.0.0.0/8',
  '100.64.0.0/10', // carrier-grade NAT; pods of some clusters
  '172.16.0.0/12',
  '192.168.0.0/16',
  '198.18.0.0/15', // benchmarks
  '240.0.0.0/4', // reserved; pods of some clusters
]);

/** The only part of IPv6 that is given out to machines of the internet. */
const global6 = subnets('ipv6', ['2000::/3']);

const special6 = subnets('ipv6', [
  '2001::/23', // protocol assignments, among them Teredo, which leads to an IPv4 address
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4, which leads to an IPv4 address
  '3fff::/20', // documentation
  'fd00:ec2::/32', // AWS: metadata and other services of the link
  'fd20:ce::254/128', // Google Cloud: metadata
]);

const private6 = subnets('ipv6', ['fc00::/7']);

/** IPv6 prefixes of 96 bits after which an IPv4 address follows, to which the packets go in the end. */
const CARRIERS_OF_IPV4 = [
  [0, 0, 0, 0, 0, 0xffff], // ::ffff:0:0/96, IPv4-mapped: the system connects by IPv4
  [0x64, 0xff9b, 0, 0, 0, 0], // 64:ff9b::/96, NAT64: how IPv6-only machines reach every IPv4 address
] as const;

/**
 * The scope of an IPv4 or IPv6 address in its usual spelling (a zone such as `%eth0` may follow). IPv4-mapped and NAT64
 * addresses are what the IPv4 address in them is. Whatever is no address is `special`, and so is what nobody has assigned.
 */
export function addressScope(address: string): AddressScope {
  const [bare = ''] = address.split('%', 1);
  const family = isIP(bare);
  if (family === 4) return scopeOf4(bare);
  if (family !== 6) return 'special';
  const carried = carried4(bare);
  return carried === undefined ? scopeOf6(bare) : scopeOf4(carried);
}

/** Whether the address is one of the internet: no request that somebody else chose may go elsewhere unasked. */
export function isPublicAddress(address: string): boolean {
  return addressScope(address) === 'public';
}

function scopeOf4(address: string): AddressScope {
  if (special4.check(address, 'ipv4')) return 'special';
  return private4.check(address, 'ipv4') ? 'private' : 'public';
}

function scopeOf6(address: string): AddressScope {
  if (special6.check(address, 'ipv6')) return 'special';
  if (private6.check(address, 'ipv6')) return 'private';
  return global6.check(address, 'ipv6') ? 'public' : 'special';
}

function carried4(address: string): string | undefined {
  const groups = groupsOf(address);
  if (!CARRIERS_OF_IPV4.some((carrier) => carrier.every((group, index) => group === groups[index]))) return undefined;
  return groups
    .slice(6)
    .flatMap((group) => [group >> 8, group & 0xff])
    .join('.');
}

/** The eight numbers of a valid IPv6 address without zone. */
function groupsOf(address: string): number[] {
  // The URL parser writes the last 32 bits of `::ffff:127.0.0.1` as two groups.
  const [head = [], tail = []] = new URL(`http://[${address}]`).hostname
    .slice(1, -1)
    .split('::')
    .map((part) => part.split(':').flatMap((group) => (group === '' ? [] : [Number.parseInt(group, 16)])));
  return [...head, ...Array<number>(8 - head.length - tail.length).fill(0), ...tail];
}

function subnets(family: 'ipv4' | 'ipv6', list: readonly string[]): BlockList {
  const blocks = new BlockList();
  for (const subnet of list) {
    const [network = '', prefix] = subnet.split('/');
    blocks.addSubnet(network, Number(prefix), family);
  }
  return blocks;
}
