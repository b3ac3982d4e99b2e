import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { isAlive } from '@rollcall/local/file-lock.ts';
import { startProcess } from '@rollcall/local/processes.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { beforeAll, describe, expect, inject, test } from 'vitest';
import { APP_REPOSITORY } from './images/images.ts';
import { type NodeOptions, startNode } from './node/node.ts';
import { removeAbandoned } from './node/slots.ts';
import { findNodeParts } from './support/cluster.ts';
import { type HostState, readHostState } from './support/host-state.ts';
import { appDeployment, appService } from './support/manifests.ts';
import { createClusterNamespace, noNode, waitForRollout } from './support/namespace.ts';

/**
 * What other files run on the host beside, to build an image or to enter the node that all share,
 * comes and goes.
 */
const CALM = { timeout: 180_000, interval: 500 };

/** Beside the node that all files share: two nodes do not know of each other. */
describe.skipIf(noNode)('a node', () => {
  let options: NodeOptions;

  beforeAll(async () => {
    // Of a run that was killed: it would be removed in the middle of a comparison.
    await removeAbandoned();
    options = { ...(await findNodeParts({ env: process.env, log: printLine })), log: printLine };
  });

  /** The state that the host has twice, some time apart. */
  async function calmHost(): Promise<HostState> {
    let state = await readHostState(options.packages);
    const isCalm = async (): Promise<boolean> => {
      const before = state;
      state = await readHostState(options.packages);
      return isDeepStrictEqual(state, before);
    };
    await waitUntil('the host is calm', isCalm, { timeoutMs: CALM.timeout, intervalMs: 1000 });
    return state;
  }

  /** The state now, of the processes those alone that were not there before. */
  async function hostSince(before: HostState): Promise<HostState> {
    const now = await readHostState(options.packages);
    return { ...now, processes: newProcesses(now, before) };
  }

  test('leaves nothing on the host but the guard of its addresses', async () => {
    const before = await calmHost();
    const node = await startNode(options);
    try {
      const target = { kubectl: options.binaries.kubectl, kubeconfigPath: node.kubeconfigPath };
      const namespace = await createClusterNamespace(target);
      const shop = appDeployment({ name: 'shop', image: `${APP_REPOSITORY}:v1`, replicas: 2 });
      await namespace.apply(shop, appService('shop'));
      await waitForRollout(namespace, 'shop');
      // Otherwise the comparison below would prove nothing.
      const during = await readHostState(options.packages);
      expect(newProcesses(during, before).length).toBeGreaterThan(5);
      expect(during.links).toContain(node.addresses.link);
      expect(during.routes.length).toBeGreaterThan(before.routes.length);
      expect(during.cgroups.length).toBeGreaterThan(before.cgroups.length);
      expect(during.filters).toEqual(before.filters);
      expect(during.settings).toEqual(before.settings);
      expect(during.mounts).toEqual(before.mounts);
    } finally {
      await node.stop();
    }
    await expect.poll(() => hostSince(before), CALM).toEqual({ ...before, processes: [] });
    expect(existsSync(node.directory)).toBe(false);
  });

  test('ends with the process that started it, and the next start removes what is left', async () => {
    const before = await calmHost();
    const logFile = join(inject('clusterDirectory'), 'abandoned-node.log');
    const script = join(import.meta.dirname, 'support', 'abandoned-node.ts');
    const starter = await startProcess({
      name: 'abandoned node',
      command: process.execPath,
      args: [script],
      logFile,
      env: process.env,
    });
    const printed = async (): Promise<string> => /^\{.*\}$/m.exec(await readFile(logFile, 'utf8'))?.[0] ?? '';
    const hasPrinted = async (): Promise<boolean> => (await printed()) !== '';
    await waitUntil('the node has started', hasPrinted, {
      timeoutMs: 300_000,
      intervalMs: 500,
      failed: starter.failed,
    });
    const abandoned: { pid: number; directory: string; link: string; cgroup: string } = JSON.parse(await printed());
    expect(isAlive(abandoned.pid)).toBe(true);
    process.kill(starter.pid, 'SIGKILL');
    await starter.exited;
    // No process, mount, link or route; only empty cgroups are there still.
    const rest = async (): Promise<HostState> => ({ ...(await hostSince(before)), cgroups: [] });
    await expect.poll(rest, CALM).toEqual({ ...before, cgroups: [], processes: [] });
    expect(existsSync(abandoned.directory)).toBe(true);

    const next = await startNode(options);
    expect(next.directory).toBe(abandoned.directory);
    await next.stop();
    await expect.poll(() => hostSince(before), CALM).toEqual({ ...before, processes: [] });
  });
});

/** What ended meanwhile was left by nobody: another file had started it. */
function newProcesses(now: HostState, before: HostState): string[] {
  return now.processes.filter((pid) => !before.processes.includes(pid));
}

function printLine(line: string): void {
  console.error(line);
}
