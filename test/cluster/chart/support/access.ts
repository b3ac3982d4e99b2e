import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startProcess } from '@rollcall/local/processes.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { inject } from 'vitest';
import { type ClusterNamespace, sharedCluster } from '../../support/namespace.ts';

export interface Answer {
  readonly status: number;
  /** Parsed JSON, or undefined where there is none. */
  readonly body: unknown;
}

/** A process of a release, reached from here through one of its pods. */
export interface Access extends AsyncDisposable {
  readonly url: string;
  /** Shown with every call. */
  readonly token: string | undefined;
  /** @param path below `/api/v1`. */
  readonly call: (method: string, path: string, body?: object) => Promise<Answer>;
}

/** Of a process' Service. */
const PORTS = { registry: 3001, gateway: 3000 } as const;

/** As the service account `default` of the namespace. */
export async function openRegistry(namespace: ClusterNamespace): Promise<Access> {
  return openAccess(namespace, 'registry', await registryToken(namespace));
}

/** A token as one that is projected into a pod of the namespace, for as long as tests last. */
export async function registryToken(namespace: ClusterNamespace): Promise<string> {
  return (await namespace.kubectl('create', 'token', 'default', '--audience=rollcall', '--duration=3h')).trim();
}

/** @param token shown with every call. */
export function openGateway(namespace: ClusterNamespace, token?: string): Promise<Access> {
  return openAccess(namespace, 'gateway', token);
}

/**
 * Forwards a port of this machine as the chart's notes say. It ends with the pod that it leads to.
 */
async function openAccess(namespace: ClusterNamespace, to: keyof typeof PORTS, token?: string): Promise<Access> {
  const { kubectl, kubeconfigPath } = sharedCluster();
  const logFile = join(inject('clusterDirectory'), `port-forward-${randomBytes(4).toString('hex')}.log`);
  const forward = await startProcess({
    name: 'port-forward',
    command: kubectl,
    args: ['--namespace', namespace.name, 'port-forward', `service/rollcall-${to}`, `:${PORTS[to]}`],
    logFile,
    env: { PATH: process.env['PATH'], KUBECONFIG: kubeconfigPath, KUBECACHEDIR: inject('clusterDirectory') },
  });
  let url = '';
  const isOpen = async (): Promise<boolean> => {
    const port = /^Forwarding from 127\.0\.0\.1:(\d+)/m.exec(await readFile(logFile, 'utf8'))?.[1];
    url = `http://127.0.0.1:${port}`;
    return port !== undefined;
  };
  await waitUntil('the port is forwarded', isOpen, { timeoutMs: 60_000, failed: forward.failed });
  return {
    url,
    token,
    call: async (method, path, body) => {
      const response = await fetch(`${url}/api/v1${path}`, {
        method,
        headers: {
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(20_000),
      });
      const text = await response.text();
      return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
    },
    [Symbol.asyncDispose]: () => forward.stop(),
  };
}
