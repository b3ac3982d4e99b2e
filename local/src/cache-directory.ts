import { homedir } from 'node:os';
import { join } from 'node:path';

/**
 * `$XDG_CACHE_HOME/rollcall/<name>`, by default below `~/.cache`: what is fetched or built once and
 * used by every checkout.
 */
export function cacheDirectory(
  env: NodeJS.ProcessEnv,
  name:
    | 'kubernetes'
    | 'redis'
    | 'node'
    | 'haproxy'
    | 'federation-peers'
    | 'image'
    | 'traefik'
    | 'schemathesis'
    | 'chromium'
    | 'debian',
): string {
  const root = env['XDG_CACHE_HOME'];
  return join(root === undefined || root === '' ? join(homedir(), '.cache') : root, 'rollcall', name);
}
