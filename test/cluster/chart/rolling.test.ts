import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type ClusterNamespace,
  createClusterNamespace,
  noNode,
  sharedCluster,
  waitForRollout,
} from '../support/namespace.ts';
import { openGateway } from './support/access.ts';
import { createApiClient, tokenOf } from './support/api-client.ts';
import { createInstallation, type Installation, noChart } from './support/installation.ts';
import { type Load, startLoad } from './support/load.ts';
import { memberDeployment } from './support/member.ts';
import { isReady, killProcess, type PodView, restarts } from './support/pods.ts';

const NAME = 'fleet';
/**
 * `whole` or `part`, by hand only (docs/decisions/0232): beside it, files that measure moments want
 * the two cores, too.
 */
const extent = process.env['ROLLCALL_TEST_ROLLING'];
const isWhole = extent === 'whole';
const SIZE = isWhole ? 10 : 3;
const RATE = isWhole ? 1000 : 100;
const REQUESTS = isWhole ? 50_000 : 5000;
/** Who ends tells the registry so, within a TTL by far: otherwise it would expire. */
const LEAVE_MS = 25_000;

/** Pods that register themselves, called through the gateway all the time. */
describe.skipIf(noNode || noChart || extent === undefined)('the instances of a service', () => {
  let chart: Installation;
  let users: ClusterNamespace;
  let load: Load;
  const resources = new AsyncDisposableStack();

  beforeAll(async () => {
    users = resources.use(await createClusterNamespace());
    chart = resources.use(await createInstallation({ crds: false }));
    // No caller is to be stopped by its limit.
    await chart.install({
      gateway: { limits: { premium: 1_000_000 } },
      registry: { namespaces: [users.name] },
    });
    const image = `${sharedCluster().appRepository}:v1`;
    const { registryUrl } = chart;
    await users.apply(memberDeployment(SIZE, { name: NAME, image, registryUrl }));
    await waitForRollout(users, NAME);
    const client = await createApiClient(chart, 'buyer');
    await using gateway = await openGateway(chart.namespace);
    const token = await tokenOf(gateway.url, client);
    const targets = [`GET ${chart.gatewayUrl}/api/v1/${NAME}/instance`];
    load = await startLoad(users, { name: 'load', image, targets, token, rate: RATE, connections: 64 });
  });
  afterAll(() => resources.disposeAsync());

  const pods = async (): Promise<readonly PodView[]> => {
    const answer = await users.kubectl('get', 'pods', `--selector=app=${NAME}`, '--output=json');
    const { items }: { items: (PodView & { metadata: { deletionTimestamp?: string } })[] } = JSON.parse(answer);
    return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  };
  const podNames = async () => (await pods()).map(({ metadata }) => metadata.name).toSorted();
  /** Of each registration whose it is, and its phase. */
  const registrations = async () => {
    const lines = '{range .items[*]}{.spec.instanceId} {.status.phase}{"\\n"}{end}';
    const query = ['get', 'sreg', `--selector=rollcall.dev/service=${NAME}`, `--output=jsonpath=${lines}`];
    return (await chart.namespace.kubectl(...query)).trim().split('\n').toSorted();
  };
  /** Waits until all pods are registered, and none besides them but one that may not have left. */
  const untilSettled = async (dead: string) => {
    const difference = async () => {
      const expected = new Set((await podNames()).map((name) => `${name} Registered`));
      const registered = (await registrations()).filter((line) => !line.startsWith(dead));
      return [...expected.symmetricDifference(new Set(registered))];
    };
    await expect.poll(difference, { timeout: LEAVE_MS, interval: 500 }).toEqual([]);
  };

  test('serve without a failed request while they, the registry and the gateway are replaced, and some are killed', async () => {
    const started = performance.now();
    const say = (what: string) => console.log(`${((performance.now() - started) / 1000).toFixed(1)} s: ${what}`);
    const [gone, killed] = await pods();
    if (gone === undefined || killed === undefined) throw new Error('There are no pods');
    const dead = gone.metadata.name;
    const watched = await load.during(async () => {
      await users.kubectl('delete', 'pod', dead, '--grace-period=0', '--force', '--wait=false');
      await killProcess(killed);
      const areBack = async () => {
        const now = await pods();
        const isAgain = now.some((pod) => pod.metadata.name === killed.metadata.name && restarts(pod) > 0);
        return isAgain && now.filter(isReady).length === SIZE;
      };
      await expect.poll(areBack, { timeout: 120_000, interval: 500 }).toBe(true);
      say('one pod is replaced, and one process back');
      await restart(users, NAME);
      say('the instances are replaced');
      await untilSettled(dead);
      await Promise.all([
        restart(users, NAME),
        restart(chart.namespace, 'rollcall-registry'),
        restart(chart.namespace, 'rollcall-gateway'),
      ]);
      say('all are replaced');
      await load.sent(REQUESTS);
    });
    say(`${watched.failed} of ${watched.requests} requests failed, ${watched.answers.length} pods answered`);
    expect(watched).toMatchObject({ failed: 0, failures: [] });
    expect(watched.answers.filter((answer) => !answer.startsWith(`${NAME}-`))).toEqual([]);
    await untilSettled(dead);
    // It has left in the moment it was given, or else expires; an hour later it is deleted.
    await expect.poll(registrations, { timeout: 120_000 }).not.toContain(`${dead} Registered`);
    say('the pod that was deleted by force is no longer registered');
  });
});

/** Replaces the pods of a Deployment, and waits until all are ready. */
async function restart(namespace: ClusterNamespace, name: string): Promise<void> {
  await namespace.kubectl('rollout', 'restart', `deployment/${name}`);
  await waitForRollout(namespace, name);
}
