import { BlockList, isIP } from 'node:net';
import type { Resolve } from '@rollcall/platform/outbound/lookups.ts';

/** Hosts whose addresses ITNs come from (PayFast's own plugins, `pfValidIP`). */
const HOSTS = ['www.payfast.co.za', 'sandbox.payfast.co.za', 'w1w.payfast.co.za', 'w2w.payfast.co.za'];

/** Networks that PayFast publishes (its knowledge base, "IP addresses"). */
const PUBLISHED = ['197.97.145.144/28', '41.74.179.192/27', '102.216.36.0/28', '102.216.36.128/28', '144.126.193.139'];

/** Whether an address is one that PayFast sends from, as far as is known. */
export type SourceCheck = (address: string | undefined) => Promise<boolean>;

/**
 * The addresses of PayFast: those that it publishes, those of the settings, and those that its names
 * have now. They change, so an ITN from elsewhere is a warning and no forgery.
 *
 * @throws Error for a setting that is neither an address nor a network.
 */
export function createSourceCheck(configured: readonly string[], resolve: Resolve): SourceCheck {
  const known = networksOf([...PUBLISHED, ...configured]);
  return async (address) => {
    if (address === undefined || isIP(address) === 0) return false;
    if (isIn(known, address)) return true;
    const answers = await Promise.allSettled(HOSTS.map((host) => resolve(host)));
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    return isIn(networksOf(found.map((entry) => entry.address)), address);
  };
}

function isIn(list: BlockList, address: string): boolean {
  return list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

function networksOf(texts: readonly string[]): BlockList {
  const list = new BlockList();
  for (const text of texts) {
    const [address = '', prefix] = text.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (isIP(address) === 0 || (prefix !== undefined && !/^\d{1,3}$/.test(prefix))) {
      throw new Error(`${text} is neither an address nor a network`);
    }
    if (prefix === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(prefix), family);
  }
  return list;
}
