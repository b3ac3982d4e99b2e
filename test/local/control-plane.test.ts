import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { startControlPlane } from '@rollcall/local/control-plane.ts';
import { isAlive } from '@rollcall/local/file-lock.ts';
import { runKubectl } from '@rollcall/local/kubectl.ts';
import { isPortFree } from '@rollcall/local/ports.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { expect, inject, test } from 'vitest';
import { compactEtcd } from '../support/etcd.ts';

const directory = await mkdtemp(join(inject('temporaryDirectory'), 'control-plane-'));
const binaries = inject('kubernetesBinaries');

test('a control plane survives the API server being killed and etcd compacted, and leaves nothing when stopped', async () => {
  const logged: string[] = [];
  const controlPlane = await startControlPlane({
    directory: join(directory, 'own'),
    binaries,
    workloads: false,
    controllerManager: true,
    namespace: 'own',
    log: (line) => logged.push(line),
  });
  const pids = Object.values(controlPlane.processes);
  expect(Object.keys(controlPlane.processes)).toEqual(['etcd', 'kube-apiserver', 'kube-controller-manager']);
  expect(logged).toEqual([expect.stringContaining(controlPlane.server)]);
  const kubectl = (...args: string[]): Promise<string> =>
    runKubectl({ kubectl: binaries.kubectl, kubeconfigPath: controlPlane.kubeconfigPath }, args);
  const crds = await kubectl('get', 'crd', '-o', 'name');
  expect(crds).toContain('serviceregistrations.rollcall.dev');
  await kubectl('create', 'configmap', 'kept');

  await controlPlane.stopApiServer();
  expect(controlPlane.processes).not.toHaveProperty('kube-apiserver');
  await expect(kubectl('get', 'configmap', 'kept')).rejects.toThrow('refused');
  await compactEtcd(controlPlane.ports.etcd);
  await controlPlane.startApiServer();
  expect(await kubectl('get', 'configmap', 'kept', '-o', 'jsonpath={.metadata.namespace}')).toBe('own');
  const list = (resourceVersion: number): Promise<string> =>
    kubectl('get', '--raw', `/api/v1/configmaps?resourceVersion=${resourceVersion}&resourceVersionMatch=Exact&limit=1`);
  await expect(list(1)).rejects.toThrow(/too old|compacted|not available/i);

  pids.push(...Object.values(controlPlane.processes));
  await controlPlane[Symbol.asyncDispose]();
  expect(pids.filter(isAlive)).toEqual([]);
  const freed = await Promise.all(Object.values(controlPlane.ports).map(isPortFree));
  expect(freed).toEqual([true, true, true]);
});

test('a component that is killed from outside is reported with the end of its log', async () => {
  await using controlPlane = await startControlPlane({
    directory: join(directory, 'killed'),
    binaries,
    workloads: false,
    log: () => undefined,
  });
  const { failed, processes } = controlPlane;
  process.kill(processes.etcd ?? 0, 'SIGKILL');
  await expect(failed).rejects.toThrow(/^etcd ended by SIGKILL\. The end of .*etcd\.log/);
});

test.runIf(process.platform === 'linux')('nothing outlives a starter that is killed', async () => {
  const script = join(import.meta.dirname, 'abandoned-control-plane.ts');
  const starter = spawn(process.execPath, [script, join(directory, 'abandoned'), JSON.stringify(binaries)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(createInterface(starter.stdout), 'line');
  const pids = Object.values<number>(JSON.parse(String(line)));
  expect(pids).toHaveLength(3);
  expect(pids.every(isAlive)).toBe(true);
  starter.kill('SIGKILL');
  const allGone = async (): Promise<boolean> => (await Promise.all(pids.map(hasEnded))).every(Boolean);
  await waitUntil('all components are gone', allGone, { timeoutMs: 30_000 });
});

/** Gone, or waiting for whoever adopted it to notice: nothing of it runs any more. */
async function hasEnded(pid: number): Promise<boolean> {
  const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  return status === undefined || /\) [ZX] /.test(status);
}
