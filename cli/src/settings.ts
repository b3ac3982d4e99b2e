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
  if (file !== undefined) return { servers: [registryOf(file)], source: file.path };
  return { servers: [DEFAULT_SERVER], source: 'the default' };
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
function registryOf({ path, text }: EndpointsFile): string {
  let registry: unknown;
  try {
    const endpoints: { readonly registry?: unknown } | null = JSON.parse(text);
    registry = endpoints?.registry;
  } catch (error) {
    throw new UsageError(`${path} is not JSON: pass --server instead`, { cause: error });
  }
  const url = typeof registry === 'string' ? URL.parse(registry) : null;
  if (url === null || !isLoopback(url)) {
    throw new UsageError(`${path} names no registry on this machine: pass --server instead`);
  }
  return url.href.replace(/\/(api\/v1\/?)?$/, '');
}

function isLoopback({ hostname }: URL): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}
