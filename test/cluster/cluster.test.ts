import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { countRequests, failuresSince, readLoad, readPod } from './support/load-report.ts';
import { appDeployment, appService, loadPod } from './support/manifests.ts';
import {
  type ClusterNamespace,
  createClusterNamespace,
  noCluster,
  noNode,
  sharedCluster,
  waitForRollout,
} from './support/namespace.ts';

const POLL = { timeout: 120_000, interval: 500 };

describe.skipIf(noCluster)('pods', () => {
  let namespace: ClusterNamespace;

  beforeAll(async () => {
    namespace = await createClusterNamespace();
    await namespace.apply(appDeployment({ name: 'shop', image: image('v1'), replicas: 3 }), appService('shop'));
    await waitForRollout(namespace, 'shop');
  });
  afterAll(() => namespace[Symbol.asyncDispose]());

  const podsOf = async (app: string): Promise<string[]> =>
    (await namespace.kubectl('get', 'pods', `--selector=app=${app}`, '--output=name'))
      .split('\n')
      .flatMap((line) => (line === '' ? [] : [line.replace('pod/', '')]));

  test('of a Service get its traffic from another pod, by its name', async () => {
    const target = `http://shop.${namespace.name}.svc.cluster.local`;
    await namespace.apply(loadPod({ name: 'client', image: image('v1'), target, rate: 200 }));
    await namespace.kubectl('wait', '--for=condition=Ready', 'pod/client', '--timeout=120s');
    // A node learns of a Service and of its pods a moment after they are ready; from then on
    // nothing may fail.
    const failuresOfAThousand = async (): Promise<string[]> => {
      const before = await readLoad(namespace, 'client');
      const count = async () => countRequests(await readLoad(namespace, 'client')) - countRequests(before);
      await expect.poll(count, POLL).toBeGreaterThan(1000);
      return failuresSince(before, await readLoad(namespace, 'client'));
    };
    await expect.poll(failuresOfAThousand, { timeout: 180_000 }).toEqual([]);
    expect(await failuresOfAThousand()).toEqual([]);
    expect(Object.keys((await readLoad(namespace, 'client')).answers)).toEqual(['v1']);
    const served = await Promise.all((await podsOf('shop')).map((pod) => readPod(namespace, pod, '/count')));
    expect(served).toHaveLength(3);
    expect(Math.min(...served.map(Number))).toBeGreaterThan(0);
  });

  test.skipIf(noNode)('and the Service are reached from the host', async () => {
    const [pod = ''] = await podsOf('shop');
    const addresses = await Promise.all([
      namespace.kubectl('get', 'service', 'shop', '--output=jsonpath={.spec.clusterIP}'),
      namespace.kubectl('get', 'pod', pod, '--output=jsonpath={.status.podIP}:8080'),
    ]);
    for (const address of addresses) {
      const response = await fetch(`http://${address}/`, { signal: AbortSignal.timeout(20_000) });
      expect(await response.text()).toBe('v1');
    }
  });

  test('that cannot become ready do not', async () => {
    const reasons = async (app: string, path: string): Promise<string> =>
      namespace.kubectl('get', 'pods', `--selector=app=${app}`, `--output=jsonpath={.items[*].status.${path}}`);
    await namespace.apply(
      appDeployment({ name: 'crash', image: image('crash') }),
      appDeployment({ name: 'unready', image: image('unready') }),
      appDeployment({ name: 'absent', image: image('no-such-tag') }),
    );
    const waiting = 'containerStatuses[0].state.waiting.reason';
    await expect.poll(() => reasons('crash', waiting), POLL).toBe('CrashLoopBackOff');
    await expect.poll(() => reasons('absent', waiting), POLL).toMatch(/^(ErrImagePull|ImagePullBackOff)$/);
    await expect.poll(() => reasons('unready', 'phase'), POLL).toBe('Running');
    expect(await reasons('unready', 'containerStatuses[0].ready')).toBe('false');
  });

  test('that are deleted end by themselves, and others replace them', async () => {
    const before = await podsOf('shop');
    await namespace.kubectl('delete', 'pod', before[0] ?? '', '--wait=false');
    await expect.poll(() => podsOf('shop'), POLL).not.toContain(before[0]);
    await waitForRollout(namespace, 'shop');
    await expect.poll(async () => (await podsOf('shop')).length, POLL).toBe(3);
  });
});

function image(tag: string): string {
  return `${sharedCluster().appRepository}:${tag}`;
}
