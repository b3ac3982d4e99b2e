/** The base URLs of interchangeable registries, and which of them to ask first. */
export interface Servers {
  /** All of them, the preferred one first. */
  inOrder(): readonly string[];
  /** It answered: ask it first from now on. */
  prefer(server: string): void;
  /** It failed: ask the one after it first from now on. */
  distrust(server: string): void;
}

/**
 * @param urls base URLs, see {@link apiUrl}; trailing slashes are ignored.
 * @throws TypeError where there is none, or one is not an http(s) URL, or carries credentials, a
 * query or a fragment. The message does not repeat the URL: it may hold a password.
 */
export function createServers(urls: string | readonly string[]): Servers {
  const servers = [...new Set((typeof urls === 'string' ? [urls] : urls).map((url) => parseServer(url)))];
  if (servers.length === 0) throw new TypeError('at least one registry URL is needed');
  let first = 0;
  return {
    inOrder: () => [...servers.slice(first), ...servers.slice(0, first)],
    prefer(server) {
      first = Math.max(0, servers.indexOf(server));
    },
    distrust(server) {
      if (servers[first] === server) first = (first + 1) % servers.length;
    },
  };
}

/**
 * Where the API of a registry is: below `/api/v1` of its base URL, or where that says so itself, as
 * it does of a registry behind the gateway: `https://api.example.com/api/v1/registry`.
 */
export function apiUrl(server: string): string {
  return /\/api\/v1(\/.+)?$/.test(new URL(server).pathname) ? server : `${server}/api/v1`;
}

function parseServer(text: string): string {
  if (!URL.canParse(text)) throw new TypeError('a registry URL is not a valid URL');
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new TypeError('a registry URL must be http or https');
  if (url.username !== '' || url.password !== '') throw new TypeError('a registry URL must not carry credentials');
  if (url.search !== '' || url.hash !== '') throw new TypeError('a registry URL must not have a query or a fragment');
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}
