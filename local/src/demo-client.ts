import { randomBytes } from 'node:crypto';
import { apiClientKind, labels } from '@rollcall/crds/kinds.ts';
import { type KubectlTarget, runKubectl } from './kubectl.ts';

const CLIENT_ID = 'demo';
const SECRET_BYTES = 24;

/** Applies a client of the gateway's with a secret of its own and all rights, to try it with. */
export async function applyDemoClient(
  target: KubectlTarget,
  namespace: string,
): Promise<{ readonly id: string; readonly secret: string }> {
  const secret = randomBytes(SECRET_BYTES).toString('base64url');
  const metadata = { name: CLIENT_ID, namespace };
  const manifests = [
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
      spec: { clientId: CLIENT_ID, tier: 'Premium', scopes: ['*'], secretRef: { name: CLIENT_ID } },
    },
  ];
  await runKubectl(target, ['apply', '-f', '-'], {
    stdin: manifests.map((each) => JSON.stringify(each)).join('\n---\n'),
  });
  return { id: CLIENT_ID, secret };
}
