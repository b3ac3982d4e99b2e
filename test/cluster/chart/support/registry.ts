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

/** The registry of a release, reached from here through one of its pods. */
export interface RegistryAccess extends AsyncDisposable {
  readonly url: string;
  /** @param path below `/api/v1`. */
  readonly call: (method: string, path: string, body?: object) => Promise<Answer>;
}

/** Forwards a port of this machine as the chart's notes say. It ends with the pod that it leads to. */
export async function openRegistry(namespace: ClusterNamespace): Promise<RegistryAccess> {
  const { kubectl, kubeconfigPath } = sharedCluster();
  const logFile = join(inject('clusterDirectory'), `port-forward-${randomBytes(4).toString('hex')}.log`);
  const forward = await startProcess({
    name: 'port-forward',
    command: kubectl,
    args: ['--namespace', namespace.name, 'port-forward', 'service/rollcall-registry', ':3001'],
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
    call: async (method, path, body) => {
      const response = await fetch(`${url}/api/v1${path}`, {
        method,
        ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
        signal: AbortSignal.timeout(20_000),
      });
      const text = await response.text();
      return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
    },
    [Symbol.asyncDispose]: () => forward.stop(),
  };
}
