import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { request } from 'node:https';
import type { ClientIdentity } from './certificates.ts';

const PROBE_TIMEOUT_MS = 2_000;

/** Asks the API server's `/readyz`; false when it does not answer 200, for whatever reason. */
export async function isApiServerReady(server: string, client: ClientIdentity): Promise<boolean> {
  const [ca, cert, key] = await Promise.all([readFile(client.ca), readFile(client.certificate), readFile(client.key)]);
  const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
  const probe = request(`${server}/readyz`, { ca, cert, key, agent: false, signal });
  // One that comes after the answer does not matter.
  probe.on('error', () => undefined).end();
  try {
    const [response] = await once(probe, 'response');
    response.resume();
    return response.statusCode === 200;
  } catch {
    return false;
  }
}
