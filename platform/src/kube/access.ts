import type { Environment } from '../process/config.ts';
import { podAccess } from './pod-access.ts';

export interface TlsCredentials {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly rejectUnauthorized?: boolean;
  readonly servername?: string;
}

/** What a request is authenticated with, and what the server is verified by. */
export interface Credentials {
  readonly tls: TlsCredentials;
  readonly headers: Readonly<Record<string, string>>;
}

/** Which API server to talk to, and as whom. */
export interface KubeAccess {
  /** The URL of the API server. */
  readonly server: string;
  /** The proxy that leads to it. */
  readonly proxyUrl?: string | undefined;
  /** The namespace of the context or of the service account, else `default`. */
  readonly namespace: string;
  /**
   * Reads the credentials as they are now: files are read, credential plugins run.
   *
   * @param refused whether the server refused the last ones: nothing that was kept is used again.
   */
  readCredentials(refused: boolean): Promise<Credentials>;
}

/**
 * Finds the API server: by the files of `KUBECONFIG`, else by the pod's service account, else by
 * `~/.kube/config`. What reads kubeconfigs is loaded only where it is needed: it needs much memory
 * (docs/decisions/0241).
 *
 * @throws when none of these is there, or a file is no kubeconfig.
 */
export async function accessFromEnvironment(environment: Environment): Promise<KubeAccess> {
  const inPod = (environment['KUBECONFIG'] ?? '') === '' ? await podAccess(environment) : undefined;
  if (inPod !== undefined) return inPod;
  const { kubeconfigAccess, kubeconfigPaths } = await import('./kubeconfig.ts');
  return kubeconfigAccess(kubeconfigPaths(environment));
}

/** As {@link accessFromEnvironment}, from one kubeconfig file. */
export async function accessFromFile(path: string): Promise<KubeAccess> {
  const { kubeconfigAccess } = await import('./kubeconfig.ts');
  return kubeconfigAccess([path]);
}
