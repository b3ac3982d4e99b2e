import { annotations, deliveryJobKind, labels } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import { type Deployment, deploymentKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import { isConflict } from '@rollcall/platform/kube/errors.ts';
import { type ResourceClient, resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { expect, type TestContext, test } from 'vitest';
import { createWorld, type RunningOperator, startOperator, until, type World } from '../fixtures.ts';

/* No controller of Deployments runs here: a job that updates one waits for pods that never come. */

const TIMEOUT_MS = 120_000;
const WAIT_MS = 60_000;

interface DeliveryWorld extends World {
  readonly deployments: ResourceClient<Deployment>;
  readonly jobs: ResourceClient<DeliveryJob>;
}

/** With a Deployment that is labelled as the service `shop`. */
async function createShop(context: Pick<TestContext, 'onTestFinished'>): Promise<DeliveryWorld> {
  const world = await createWorld(context);
  const { connection, namespace } = world;
  const deployments = resourceClient(connection, deploymentKind, namespace);
  await deployments.create({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'shop', namespace, labels: { [labels.service]: 'shop' } },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: 'shop' } },
      template: {
        metadata: { labels: { app: 'shop' } },
        spec: { containers: [{ name: 'main', image: 'registry.example/shop:1' }] },
      },
    },
  });
  return { ...world, deployments, jobs: resourceClient(connection, deliveryJobKind, namespace) };
}

function startDelivery(world: World): Promise<RunningOperator> {
  return startOperator(world, { settings: { ROLLCALL_DELIVERY_NAMESPACES: world.namespace } });
}

async function deploy({ jobs, namespace }: DeliveryWorld, serviceName: string): Promise<string> {
  const name = `deploy-${serviceName}`;
  await jobs.create({
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'DeliveryJob',
    metadata: { name, namespace },
    spec: {
      serviceName,
      operation: 'Deploy',
      version: `of-${serviceName}`,
      strategy: 'Rolling',
      artifact: { type: 'image', url: `registry.example/shop:${serviceName}` },
      abort: false,
      promote: false,
    },
  });
  return name;
}

async function untilAt({ jobs }: DeliveryWorld, name: string, stage: string): Promise<DeliveryJob> {
  await until(`${name} is at ${stage}`, async () => (await jobs.get(name)).status?.stage === stage, WAIT_MS);
  return jobs.get(name);
}

const label = ({ deployments }: DeliveryWorld, service: string) =>
  deployments.patch('shop', { metadata: { labels: { [labels.service]: service } } });

async function claimant({ deployments }: DeliveryWorld): Promise<string | undefined> {
  return (await deployments.get('shop')).metadata.annotations?.[annotations.delivering]?.split('/')[1];
}

/** Says what the controller of Deployments would, of one without pods. */
async function reportRollout({ connection, deployments, namespace }: DeliveryWorld): Promise<void> {
  const { generation = 0 } = (await deployments.get('shop')).metadata;
  await connection.request({
    method: 'PATCH',
    path: `/apis/apps/v1/namespaces/${namespace}/deployments/shop/status`,
    contentType: 'application/merge-patch+json',
    body: { status: { observedGeneration: generation, replicas: 0, updatedReplicas: 0 } },
  });
}

async function imageOf({ deployments }: DeliveryWorld): Promise<string | undefined> {
  return (await deployments.get('shop')).spec.template.spec.containers[0]?.image;
}

test(
  'of two jobs that find the same Deployment one has it, and the other waits until it is given back',
  async (context) => {
    const world = await createShop(context);
    await startDelivery(world);
    const first = await deploy(world, 'shop');
    await untilAt(world, first, 'Updating');
    await until('it is updated', async () => (await imageOf(world)) === 'registry.example/shop:shop', WAIT_MS);
    await label(world, 'cart');
    const second = await deploy(world, 'cart');
    await until(
      'the other waits',
      async () =>
        (await world.jobs.get(second)).status?.message?.includes(`job ${world.namespace}/${first} delivers`) === true,
      WAIT_MS,
    );
    expect((await world.jobs.get(second)).status?.stage).toBe('Preparing');
    expect(await claimant(world)).toBe(first);
    expect(await imageOf(world)).toBe('registry.example/shop:shop');

    // Nobody has pods here: the rollback waits for none of a Deployment without any.
    await world.deployments.patch('shop', { spec: { replicas: 0 } });
    await world.jobs.patch(first, { spec: { abort: true } });
    await until(
      'the other has it',
      async () => {
        await reportRollout(world);
        return (await claimant(world)) === second;
      },
      WAIT_MS,
    );
    // The claim goes before the job says that it has ended.
    await expect
      .poll(async () => (await world.jobs.get(first)).status, { timeout: WAIT_MS })
      .toMatchObject({ phase: 'RolledBack', reason: 'Aborted' });
    await until('it updates', async () => (await imageOf(world)) === 'registry.example/shop:cart', WAIT_MS);
  },
  TIMEOUT_MS,
);

test(
  'a job ends at once though its Deployment has got the label of another service',
  async (context) => {
    const world = await createShop(context);
    await startDelivery(world);
    const job = await deploy(world, 'shop');
    await untilAt(world, job, 'Updating');
    await label(world, 'cart');
    await world.deployments.patch('shop', { spec: { replicas: 0 } });
    await world.jobs.patch(job, { spec: { abort: true } });
    await until(
      'it is undone',
      async () => {
        await reportRollout(world);
        return (await world.jobs.get(job)).status?.phase === 'RolledBack';
      },
      WAIT_MS,
    );
    expect(await claimant(world)).toBeUndefined();
  },
  TIMEOUT_MS,
);

test(
  'the claim of a job that is gone is replaced, and what was decided before fails then',
  async (context) => {
    const world = await createShop(context);
    const operator = await startDelivery(world);
    const first = await deploy(world, 'shop');
    await until('it is updated', async () => (await imageOf(world)) === 'registry.example/shop:shop', WAIT_MS);
    await operator.stop();
    const seen = await world.deployments.get('shop');
    await world.jobs.patch(first, { metadata: { finalizers: [] } });
    await world.jobs.delete(first);
    await label(world, 'cart');
    const labelled = await world.deployments.get('shop');

    await startDelivery(world);
    const second = await deploy(world, 'cart');
    await untilAt(world, second, 'Updating');
    expect(await claimant(world)).toBe(second);
    // An operator that has slept since.
    const restoring = { metadata: { annotations: { [annotations.delivering]: null } } };
    for (const { metadata } of [seen, labelled]) {
      const { uid = '', resourceVersion = '' } = metadata;
      const late = world.deployments.patch('shop', restoring, { uid, resourceVersion });
      await expect(late).rejects.toSatisfy(isConflict);
    }
    expect(await claimant(world)).toBe(second);
  },
  TIMEOUT_MS,
);

test(
  'a claim that somebody has removed is made again',
  async (context) => {
    const world = await createShop(context);
    await startDelivery(world);
    const job = await deploy(world, 'shop');
    await until('it is updated', async () => (await imageOf(world)) === 'registry.example/shop:shop', WAIT_MS);
    await world.deployments.patch('shop', { metadata: { annotations: { [annotations.delivering]: null } } });
    await until('it is claimed again', async () => (await claimant(world)) === job, WAIT_MS);
    expect((await world.jobs.get(job)).status?.phase).toBe('Progressing');
  },
  TIMEOUT_MS,
);
