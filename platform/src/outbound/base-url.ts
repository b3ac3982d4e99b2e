import { bareHost, isAddress } from './url-host.ts';

/**
 * Reads the base URL of a provider, which a setting names so that a simulator can stand in. In
 * production it must be of https, but for this machine: else credentials go over the network for
 * all to read.
 *
 * @throws Error naming what is wrong; the URL is not repeated.
 */
export function providerBaseUrl(text: string, isProduction: boolean): URL {
  if (!URL.canParse(text)) throw new Error('the base URL is not a URL');
  const url = new URL(text);
  const { protocol, username, password, search, hash } = url;
  if (protocol !== 'https:' && protocol !== 'http:') throw new Error('the base URL must be of https or http');
  if (username !== '' || password !== '') throw new Error('the base URL must not hold credentials');
  if (search !== '' || hash !== '') throw new Error('the base URL must have neither query nor fragment');
  if (isProduction && protocol !== 'https:' && !isLoopback(url.hostname)) {
    throw new Error('the base URL must be of https in production');
  }
  return url;
}

/** Pure. The URL of a path below the base, whether or not the base ends in a slash. */
export function urlBelow(base: URL, path: string): URL {
  const url = new URL(base);
  url.pathname = `${base.pathname.replace(/\/+$/, '')}/${path.replace(/^\/+/, '')}`;
  return url;
}

function isLoopback(hostname: string): boolean {
  const host = bareHost(hostname);
  return host === 'localhost' || host === '::1' || (isAddress(host) && host.startsWith('127.'));
}
