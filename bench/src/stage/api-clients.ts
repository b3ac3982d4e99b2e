import { apiClientKind, labels } from '@rollcall/crds/kinds.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { secretKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import type { RollcallSubject } from './stage.ts';

const SECRET = 'the-secret-of-the-bench';

interface NewClient {
  readonly namespace: string;
  readonly id: string;
  readonly scopes?: readonly string[];
}

/** Makes a client of the gateway's, for {@link tokenFrom}. */
export async function createApiClient(kube: KubeConnection, { namespace, id, scopes = [] }: NewClient): Promise<void> {
  await resourceClient(kube, secretKind, namespace).create({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: id, labels: { [labels.apiClientSecret]: 'true' } },
    data: { secret: Buffer.from(SECRET).toString('base64') },
  });
  await resourceClient(kube, apiClientKind, namespace).create({
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'ApiClient',
    metadata: { name: id },
    spec: { clientId: id, tier: 'Premium', scopes: [...scopes], secretRef: { name: id, key: 'secret' } },
  });
}

/** A token of a client that the gateway may learn of in a moment only. */
export async function tokenFrom({ port }: Pick<RollcallSubject, 'port'>, id: string): Promise<string> {
  const form = { grant_type: 'client_credentials', client_id: id, client_secret: SECRET };
  const url = `http://127.0.0.1:${port}/api/v1/auth/token`;
  let token = '';
  const isIssued = async () => {
    const answer = await fetch(url, { method: 'POST', body: new URLSearchParams(form) });
    const { access_token: issued = '' } = (await answer.json()) as { access_token?: string };
    token = issued;
    return token !== '';
  };
  await waitUntil('the gateway issues a token', isIssued, { timeoutMs: 20_000, intervalMs: 500 });
  return token;
}

/** @throws unless the registry accepts it. */
export async function register(
  { port }: Pick<RollcallSubject, 'port'>,
  name: string,
  { url, capabilities = ['rest'] }: { readonly url: string; readonly capabilities?: readonly string[] },
): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${port}/api/v1/services/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ service_name: name, service_url: url, capabilities }),
  });
  if (answer.status !== 200) throw new Error(`The registry answered ${answer.status}`);
}
