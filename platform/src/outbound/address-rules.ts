import type { LookupAddress } from 'node:dns';
import { CodedError } from '../errors.ts';
import { addressScope, isLoopbackAddress, isPublicAddress } from './address-scope.ts';
import { bareHost, isAddress } from './url-host.ts';

/** Whether a connection to an IP address may be made. */
export type AddressRule = (address: string) => boolean;

/** Thrown in place of connecting. */
export class AddressRefusedError extends CodedError<'ADDRESS_REFUSED'> {
  constructor(host: string, addresses: readonly string[]) {
    const where = addresses.includes(host) ? host : `${host} (${addresses.join(', ')})`;
    super('ADDRESS_REFUSED', `Connections to ${where} are not allowed`);
  }
}

/**
 * Where requests may go whose URL somebody else chooses: to the internet only; also to private
 * addresses, as machines of the cluster have; to this machine alone; or anywhere, this machine and
 * its link included. Whoever chooses the URL would else reach what trusts this process's own
 * address, or the credentials that clouds serve on the link.
 */
export const allowedAddresses = ['public', 'cluster', 'loopback', 'any'] as const;
export type AllowedAddresses = (typeof allowedAddresses)[number];

/** Which addresses that means. */
export const addressRules: Readonly<Record<AllowedAddresses, AddressRule>> = {
  public: isPublicAddress,
  cluster: (address) => addressScope(address) !== 'special',
  loopback: isLoopbackAddress,
  any: () => true,
};

/**
 * The addresses of a host that may be connected to.
 *
 * @throws AddressRefusedError where there is none.
 */
export function allowedOf(host: string, found: readonly LookupAddress[], mayConnect: AddressRule): LookupAddress[] {
  const allowed = found.filter(({ address }) => mayConnect(address));
  if (allowed.length > 0) return allowed;
  throw new AddressRefusedError(
    host,
    found.map(({ address }) => address),
  );
}

/**
 * Whether a host is an address that may not be connected to.
 *
 * @param hostname as in a URL: IPv6 addresses are bracketed.
 */
export function isRefusedAddress(hostname: string, mayConnect: AddressRule): boolean {
  return isAddress(hostname) && !mayConnect(bareHost(hostname));
}
