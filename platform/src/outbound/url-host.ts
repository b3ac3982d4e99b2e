import { isIP } from 'node:net';

/** @param hostname as in a URL. @returns it as it is looked up: an IPv6 address without its brackets. */
export function bareHost(hostname: string): string {
  return hostname.replaceAll(/^\[|\]$/g, '');
}

/** Whether nothing is looked up for the host. @param hostname as in a URL. */
export function isAddress(hostname: string): boolean {
  return isIP(bareHost(hostname)) > 0;
}

/** The port that a URL of http or https leads to. */
export function portOf({ port, protocol }: Pick<URL, 'port' | 'protocol'>): number {
  if (port !== '') return Number(port);
  return protocol === 'https:' ? 443 : 80;
}
