import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { UsageError } from './exit-codes.ts';

/** Which registry to speak to. */
export interface ServerChoice {
  readonly servers: readonly string[];
  /** Who said so, for error messages. */
  readonly source: string;
}

export interface ServerSources {
  /** Value of `--server`. */
  readonly option: string | undefined;
  /** Value of `ROLLCALL_SERVER`. */
  readonly variable: string | undefined;
  readonly cwd: string;
}

const DEFAULT_SERVER = 'http://127.0.0.1:3001';
const DEFAULT_GATEWAY = 'http://127.0.0.1:3000';
const ENDPOINTS_FILE = join('.local', 'endpoints.json');

/**
 * The first of: the option, the variable, `.local/endpoints.json` in the working directory or above
 * it (written by `npm start`), the default. Option and variable may hold several URLs, separated by
 * commas.
 *
 * @throws UsageError where the one that counts is unusable.
 */
export function chooseServer({ option, variable, cwd }: ServerSources): ServerChoice {
  if (option !== undefined) return { servers: splitServers(option), source: '--server' };
  if (variable !== undefined && variable !== '') return { servers: splitServers(variable), source: 'ROLLCALL_SERVER' };
  const file = findEndpoints(cwd);
  if (file !== undefined) return { servers: [localUrlOf(file, 'registry')], source: file.path };
  return { servers: [DEFAULT_SERVER], source: 'the default' };
}

/** Which gateway to speak to. */
export interface GatewayChoice {
  readonly url: string;
  /** Who said so, for error messages. */
  readonly source: string;
  /** The client of `npm start`, where that is the gateway. */
  readonly client?: { readonly id: string; readonly secret: string };
}

/**
 * The first of: the option `--gateway`, the variable ROLLCALL_GATEWAY, `.local/endpoints.json` as
 * {@link chooseServer} finds it, the default.
 *
 * @throws UsageError where the one that counts is unusable.
 */
export function chooseGateway({ option, variable, cwd }: ServerSources): GatewayChoice {
  if (option !== undefined) return { url: gatewayUrl(option, '--gateway'), source: '--gateway' };
  if (variable !== undefined && variable !== '')
    return { url: gatewayUrl(variable, 'ROLLCALL_GATEWAY'), source: 'ROLLCALL_GATEWAY' };
  const file = findEndpoints(cwd);
  if (file === undefined) return { url: DEFAULT_GATEWAY, source: 'the default' };
  const { demoClient } = endpointsOf(file);
  const url = localUrlOf(file, 'gateway');
  return { url, source: file.path, ...(isClient(demoClient) && { client: demoClient }) };
}

function gatewayUrl(text: string, source: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new UsageError(`${source}: ${text} is no http or https URL`);
  return url.href.replace(/\/+$/, '');
}

function isClient(value: unknown): value is { readonly id: string; readonly secret: string } {
  if (typeof value !== 'object' || value === null) return false;
  return typeof Reflect.get(value, 'id') === 'string' && typeof Reflect.get(value, 'secret') === 'string';
}

function splitServers(text: string): string[] {
  return text.split(',').flatMap((part) => (part.trim() === '' ? [] : [part.trim()]));
}

interface EndpointsFile {
  readonly path: string;
  readonly text: string;
}

function findEndpoints(directory: string): EndpointsFile | undefined {
  const path = join(directory, ENDPOINTS_FILE);
  try {
    return { path, text: readFileSync(path, 'utf8') };
  } catch {
    const parent = dirname(directory);
    return parent === directory ? undefined : findEndpoints(parent);
  }
}

/**
 * A file that happens to lie about must not be able to send us, and our token, to another machine:
 * loopback only.
 */
function localUrlOf(file: EndpointsFile, what: 'registry' | 'gateway'): string {
  const { [what]: named } = endpointsOf(file);
  const url = typeof named === 'string' ? URL.parse(named) : null;
  if (url === null || !isLoopback(url)) {
    throw new UsageError(`${file.path} names no ${what} on this machine: pass --${OPTIONS[what]} instead`);
  }
  return url.href.replace(/\/(api\/v1\/?)?$/, '');
}

const OPTIONS = { registry: 'server', gateway: 'gateway' } as const;

function endpointsOf({ path, text }: EndpointsFile): Readonly<Record<string, unknown>> {
  try {
    const endpoints: unknown = JSON.parse(text);
    return typeof endpoints === 'object' && endpoints !== null ? Object.fromEntries(Object.entries(endpoints)) : {};
  } catch (error) {
    throw new UsageError(`${path} is not JSON: pass --server or --gateway instead`, { cause: error });
  }
}

function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}
