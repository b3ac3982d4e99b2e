import { runKubectl } from '@rollcall/local/kubectl.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { sharedCluster } from '../../support/namespace.ts';
import { runCli } from './cli.ts';
import type { Installation } from './installation.ts';

export interface ApiClient {
  readonly id: string;
  readonly secret: string;
}

/**
 * Makes a client as the chart's notes say: by the command line, whose output goes to kubectl. It
 * may call as often as any.
 */
export async function createApiClient({ clientsNamespace }: Installation, id: string): Promise<ApiClient> {
  const args = ['clients', 'create', id, '--tier', 'Premium', '--scope', '*', '--namespace', clientsNamespace];
  const { stdout, stderr } = await runCli(args);
  await runKubectl(sharedCluster(), ['apply', '--filename=-'], { stdin: stdout });
  const secret = /^secret: +(\S+)$/m.exec(stderr)?.[1];
  if (secret === undefined) throw new Error('The command line printed no secret');
  return { id, secret };
}

/**
 * Asks for a token with id and secret (RFC 6749, section 4.4), until the gateway knows the client.
 *
 * @param url of the gateway.
 */
export async function tokenOf(url: string, { id, secret }: ApiClient): Promise<string> {
  let token: string | undefined;
  const isThere = async (): Promise<boolean> => {
    const answer = await fetch(`${url}/api/v1/auth/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` },
      body: new URLSearchParams({ grant_type: 'client_credentials' }),
    });
    // Where no way leads to the gateway yet, the answer is somebody else's.
    if (answer.headers.get('content-type')?.startsWith('application/json') !== true) return false;
    token = ((await answer.json()) as { readonly access_token?: string }).access_token;
    return token !== undefined;
  };
  await waitUntil(`${id} gets a token`, isThere, { timeoutMs: 60_000, intervalMs: 1000 });
  return token ?? '';
}
