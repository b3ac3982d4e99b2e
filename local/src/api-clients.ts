import { randomBytes } from 'node:crypto';
import { apiClientKind, labels } from '@rollcall/crds/kinds.ts';
import { type KubectlTarget, runKubectl } from './kubectl.ts';

const SECRET_BYTES = 24;

/** A client of the gateway's. */
export interface LocalClient {
  readonly id: string;
  readonly secret: string;
  readonly scopes: readonly string[];
}

/** A client with a secret of its own. */
export function newClient(id: string, scopes: readonly string[]): LocalClient {
  return { id, secret: randomBytes(SECRET_BYTES).toString('base64url'), scopes };
}

/** Applies clients of the gateway's with their secrets. */
export async function applyClients(
  target: KubectlTarget,
  namespace: string,
  clients: readonly LocalClient[],
): Promise<void> {
  const manifests = clients.flatMap(({ id, secret, scopes }) => {
    const metadata = { name: id, namespace };
    return [
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { ...metadata, labels: { [labels.apiClientSecret]: 'true' } },
        stringData: { secret },
      },
      {
        apiVersion: apiClientKind.apiVersion,
        kind: apiClientKind.kind,
        metadata,
        spec: { clientId: id, tier: 'Premium', scopes, secretRef: { name: id } },
      },
    ];
  });
  await runKubectl(target, ['apply', '-f', '-'], {
    stdin: manifests.map((each) => JSON.stringify(each)).join('\n---\n'),
  });
}
