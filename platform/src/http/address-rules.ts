import type { AddressRule } from './guarded-agent.ts';
import { addressScope, isPublicAddress } from './public-address.ts';

/**
 * Where requests may go whose URL somebody else chooses: to the internet only; also to private addresses, as machines of the
 * cluster have; or anywhere, this machine and its link included. Whoever chooses the URL would else reach what trusts this
 * process's own address, or the credentials that clouds serve on the link.
 */
export type AllowedAddresses = 'public' | 'cluster' | 'any';

/** Which addresses that means. */
export const addressRules: Readonly<Record<AllowedAddresses, AddressRule>> = {
  public: isPublicAddress,
  cluster: (address) => addressScope(address) !== 'special',
  any: () => true,
};
