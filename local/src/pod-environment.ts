import { randomBytes } from 'node:crypto';
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface PodEnvironmentOptions {
  /** Where the files are written; made when it is not there. */
  readonly directory: string;
  /** The port of the API server on 127.0.0.1. */
  readonly apiServerPort: number;
  /** The path of the certificate authority. */
  readonly ca: string;
  readonly namespace: string;
}

export interface PodEnvironment {
  /** What a process needs to find the API server as a pod does. */
  readonly env: Readonly<Record<string, string>>;
  /** The API server's `--token-auth-file`. */
  readonly tokenAuthFile: string;
}

/**
 * Writes the files of a service account, whose token may do everything, so that processes run here
 * as in a pod: by a kubeconfig each would load much more (platform/src/kube/access.ts).
 */
export async function writePodEnvironment(options: PodEnvironmentOptions): Promise<PodEnvironment> {
  const { directory, apiServerPort, ca, namespace } = options;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const token = randomBytes(32).toString('hex');
  const tokenAuthFile = join(directory, 'tokens.csv');
  await Promise.all([
    copyFile(ca, join(directory, 'ca.crt')),
    writeFile(join(directory, 'namespace'), namespace),
    writeFile(join(directory, 'token'), token, { mode: 0o600 }),
    writeFile(tokenAuthFile, `${token},rollcall-local,rollcall-local,"system:masters"\n`, { mode: 0o600 }),
  ]);
  const env = {
    KUBERNETES_SERVICE_HOST: '127.0.0.1',
    KUBERNETES_SERVICE_PORT: String(apiServerPort),
    ROLLCALL_SERVICE_ACCOUNT_DIRECTORY: directory,
  };
  return { env, tokenAuthFile };
}
