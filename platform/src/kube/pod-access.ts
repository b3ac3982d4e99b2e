import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Environment } from '../process/config.ts';
import type { KubeAccess } from './access.ts';

const SERVICE_ACCOUNT_DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * The access of a pod: its service account's files, at the API server that Kubernetes names in the
 * environment. `ROLLCALL_SERVICE_ACCOUNT_DIRECTORY` names another directory, for processes that run
 * as in a pod.
 *
 * @returns undefined outside of a pod.
 */
export async function podAccess(environment: Environment): Promise<KubeAccess | undefined> {
  const host = environment['KUBERNETES_SERVICE_HOST'];
  const port = environment['KUBERNETES_SERVICE_PORT'];
  const directory = environment['ROLLCALL_SERVICE_ACCOUNT_DIRECTORY'] ?? SERVICE_ACCOUNT_DIRECTORY;
  const read = async (name: string) => (await readFile(join(directory, name), 'utf8')).trim();
  const namespace = await read('namespace').catch(ignoreAbsence);
  if (host === undefined || port === undefined || namespace === undefined) return undefined;
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    namespace,
    async readCredentials() {
      const [ca, token] = await Promise.all([read('ca.crt'), read('token')]);
      if (token === '') throw new Error(`The token file ${join(directory, 'token')} is empty`);
      return { tls: { ca }, headers: { authorization: `Bearer ${token}` } };
    },
  };
}

function ignoreAbsence(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}
