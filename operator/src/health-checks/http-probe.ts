import { ask } from '@rollcall/platform/outbound/exchange.ts';
import type { Lookups } from '@rollcall/platform/outbound/lookups.ts';
import { Agent } from 'undici';
import type { Probe } from './probe.ts';

const BODY_LIMIT_BYTES = 16 * 1024;
/** Checks give up before. */
const CONNECT_TIMEOUT_MS = 60_000;

/** GET; each check makes a connection of its own. */
export function createHttpProbe(lookups: Pick<Lookups, 'within'>) {
  const connect = { timeout: CONNECT_TIMEOUT_MS, lookup: lookups.within(CONNECT_TIMEOUT_MS) };
  const agent = new Agent({ allowH2: false, pipelining: 0, connect });
  const probe: Probe = async (url, { path, timeoutSeconds }, signal) => {
    const question = { method: 'GET', url: below(url, path), timeoutMs: timeoutSeconds * 1000 } as const;
    const { status } = await ask(agent, { ...question, limitBytes: BODY_LIMIT_BYTES }, signal);
    const answered = `it answered ${status}`;
    if (status < 200 || status >= 400) throw new Error(answered);
    return answered;
  };
  return { probe, close: () => agent.destroy() };
}

/** Parts are set, not resolved: whatever the path is, the host stays. */
function below(base: URL, path: string | undefined): URL {
  if (path === undefined) return base;
  const url = new URL(base);
  const [pathname = '', ...query] = path.split('?');
  url.pathname = base.pathname.replace(/\/+$/, '') + pathname;
  url.search = query.join('?');
  return url;
}
