import { readFile } from 'node:fs/promises';
import { request } from 'node:https';
import type { ClientIdentity } from './certificates.ts';

const PROBE_TIMEOUT_MS = 2_000;

/** Asks the API server's `/readyz`; false when it does not answer 200, for whatever reason. */
export async function isApiServerReady(server: string, client: ClientIdentity): Promise<boolean> {
  const [ca, cert, key] = await Promise.all([readFile(client.ca), readFile(client.certificate), readFile(client.key)]);
  return new Promise((resolve) => {
    const probe = request(
      `${server}/readyz`,
      { ca, cert, key, agent: false, timeout: PROBE_TIMEOUT_MS },
      (response) => {
        response.resume();
        resolve(response.statusCode === 200);
      },
    );
    probe.on('timeout', () => probe.destroy(new Error('no answer in time')));
    probe.on('error', () => resolve(false));
    probe.end();
  });
}
