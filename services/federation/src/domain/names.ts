import { isIP } from 'node:net';

/** Segments of paths that say nothing of a service. */
const COMMON = /^(?:api|graphql|query|v\d+)$/i;
/** Hosts that say nothing of one. */
const NAMELESS_HOST = /^(?:localhost|\[.*\])$/i;

/**
 * Pure. What a service is called that somebody tells of by its URL alone: the last segment of its
 * path that is no usual one, else the first label of its host, else its address and port.
 *
 * @param url of http or https.
 */
export function serviceNameOf(url: string): string {
  const { pathname, hostname, port } = new URL(url);
  const segment = pathname.split('/').findLast((each) => each !== '' && !COMMON.test(each));
  if (segment !== undefined) return plain(segment);
  if (isIP(hostname) === 0 && !NAMELESS_HOST.test(hostname)) return plain(hostname.split('.')[0] ?? hostname);
  return plain(port === '' ? hostname : `${hostname}-${port}`);
}

function plain(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9_.]+/g, '-').replaceAll(/^[-.]+|-+$/g, '') || 'service';
}
