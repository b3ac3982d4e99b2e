import { readFile, writeFile } from 'node:fs/promises';
import type { ClientIdentity } from './certificates.ts';

export interface KubeconfigOptions {
  readonly server: string;
  readonly client: ClientIdentity;
  /** What commands use that name no namespace. */
  readonly namespace: string;
}

/**
 * Writes a kubeconfig with everything embedded, in JSON, which is YAML too; readable by its owner
 * only.
 */
export async function writeKubeconfig(path: string, options: KubeconfigOptions): Promise<void> {
  const { server, client, namespace } = options;
  const [ca, certificate, key] = await Promise.all(
    [client.ca, client.certificate, client.key].map((file) => readFile(file, 'base64')),
  );
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'rollcall-local', cluster: { server, 'certificate-authority-data': ca } }],
    users: [{ name: 'client', user: { 'client-certificate-data': certificate, 'client-key-data': key } }],
    contexts: [{ name: 'rollcall-local', context: { cluster: 'rollcall-local', user: 'client', namespace } }],
    'current-context': 'rollcall-local',
  };
  await writeFile(path, `${JSON.stringify(config, undefined, 2)}\n`, { mode: 0o600 });
}
