import { BlockList, isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Proxies that say truly who has called them: the ranges of their addresses. */
export type TrustedProxies = BlockList;

const WITH_PORT = /^(?:\[([^\]]*)\](?::\d{1,5})?|([^:]*):\d{1,5})$/;

/**
 * @param ranges addresses and CIDR ranges, such as `10.0.0.0/8` and `fd00::/8`.
 * @throws TypeError naming the first that is neither.
 */
export function parseTrustedProxies(ranges: readonly string[]): TrustedProxies {
  const trusted = new BlockList();
  for (const range of ranges) {
    const [address = '', prefix, more] = range.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    const bits = family === 'ipv6' ? 128 : 32;
    const length = prefix === undefined ? bits : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN;
    if (isIP(address) === 0 || address.includes('%') || more !== undefined || !(length <= bits)) {
      throw new TypeError(`${range} is neither an address nor a range such as 10.0.0.0/8`);
    }
    trusted.addSubnet(address, length, family);
  }
  return trusted;
}

/**
 * Who sent a request: the last address on its way that is not one of our proxies'.
 *
 * Each proxy adds the address that called it at the end of `X-Forwarded-For`. Read from the end, an
 * entry is true as long as all after it are trusted; the first that is not trusted is the caller,
 * and whatever stands before it is what the caller says. Where an entry is no address, the proxy
 * that wrote it is all that is known.
 *
 * @param remoteAddress of the connection.
 * @param forwardedFor the header `X-Forwarded-For`, if any.
 * @returns an address without port and zone, in lower case and as short as may be.
 */
export function clientAddress(
  remoteAddress: string,
  forwardedFor: string | readonly string[] | undefined,
  trusted: TrustedProxies,
): string {
  let known = plainAddress(remoteAddress) ?? remoteAddress;
  let rest = (typeof forwardedFor === 'string' ? forwardedFor : forwardedFor?.join(',')) ?? '';
  while (rest !== '' && isTrusted(known, trusted)) {
    const comma = rest.lastIndexOf(',');
    const address = plainAddress(rest.slice(comma + 1).trim());
    if (address === undefined) break;
    known = address;
    rest = rest.slice(0, Math.max(0, comma));
  }
  return known;
}

function isTrusted(address: string, trusted: TrustedProxies): boolean {
  const family = isIP(address);
  return family !== 0 && trusted.check(address, family === 6 ? 'ipv6' : 'ipv4');
}

/**
 * An address in the one spelling that it has here, without port and zone; undefined for anything
 * else.
 */
function plainAddress(text: string): string | undefined {
  const [, bracketed, named] = WITH_PORT.exec(text) ?? [];
  const address = (bracketed ?? (named === '' ? undefined : named) ?? text).split('%', 1)[0] ?? '';
  const family = isIP(address);
  if (family === 0) return undefined;
  return family === 4 ? address : ipaddr.process(address).toString();
}

/**
 * @returns an IPv4 address, or the /64 network of a canonical IPv6 one: a single customer has at
 * least that many addresses.
 */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address;
  const network = ipaddr.IPv6.parse(address).parts.slice(0, 4);
  return `${network.map((part) => part.toString(16)).join(':')}::/64`;
}
