import { once } from 'node:events';
import { serviceRegistrationKind } from '@rollcall/crds/kinds.ts';
import type { DeliveryStrategy } from '@rollcall/crds/types.gen.ts';
import { leaseKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import { microTime } from '@rollcall/platform/kube/micro-time.ts';
import { resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type Cluster, joinCluster } from './cluster.ts';
import { startGuard } from './guard.ts';
import { serveStatus } from './servers.ts';
import {
  createPolicy,
  createService,
  createWorld,
  deploy,
  expectedState,
  metricOf,
  type Original,
  type PolicyChanges,
  quick,
  startOperator,
  stateOf,
  until,
  untilEnd,
  untilJob,
  type World,
  webhookCheck,
} from './world.ts';

/** What does not last. */
const OFTEN = { intervalMs: 50 };

let cluster: Cluster;
beforeAll(async () => {
  cluster = await joinCluster(inject('deliveryCluster'));
});
afterAll(() => cluster?.[Symbol.asyncDispose]());

const strategies: readonly DeliveryStrategy[] = ['Rolling', 'BlueGreen', 'Canary'];

/** Everything is as before the job, and stays so. */
async function untilAsBefore(world: World, original: Original): Promise<void> {
  const { name } = original.deployment.metadata;
  await expect
    .poll(() => stateOf(world, name), { timeout: 60_000, interval: 200 })
    .toEqual(expectedState(original, '1'));
  const deployment = await world.deployments.get(name);
  expect(deployment.spec).toEqual(original.deployment.spec);
  expect((await world.services.get(name)).spec).toEqual(original.service.spec);
}

describe('a new version that does not work is rolled back, by each strategy, and no pod of the old one is missed', () => {
  const faults = [
    { tag: 'missing-2', reason: 'ImagePullFailed' },
    { tag: 'crash-2', reason: 'CrashLoop' },
    { tag: 'unready-2', reason: 'ProgressDeadlineExceeded' },
  ];

  test('because its image is missing, it crashes, or it never becomes ready', async (context) => {
    const world = await createWorld(cluster, context);
    const operator = await startOperator(world);
    await createPolicy(world, '*');
    const cases = strategies.flatMap((strategy) => faults.map((fault) => ({ strategy, ...fault })));
    const named = cases.map((each) => ({ ...each, name: `${each.strategy}-${each.tag}`.toLowerCase() }));
    const rolling = { ...quick.rolling, progressDeadlineSeconds: 10 };
    const slow = named.filter(({ tag }) => tag === 'unready-2');
    await Promise.all(slow.map(({ name }) => createPolicy(world, name, { rolling })));
    const originals = await Promise.all(named.map(({ name }) => createService(world, name)));
    const guard = await startGuard(
      world,
      named.map(({ name }) => name),
    );
    const jobs = await Promise.all(named.map(({ name, strategy, tag }) => deploy(world, name, { strategy, tag })));
    const ends = await Promise.all(jobs.map((job) => untilEnd(world, job)));
    expect(ends.map(({ status }) => [status?.phase, status?.failure?.reason])).toEqual(
      named.map(({ reason }) => ['RolledBack', reason]),
    );
    for (const original of originals) await untilAsBefore(world, original);
    expect(guard.faults()).toEqual([]);
    for (const { reason } of faults) {
      expect(await metricOf(operator, 'rollcall_delivery_rollbacks_total', { reason })).toBe(3);
    }
  });

  test('because it falls over once it has all traffic', async (context) => {
    const world = await createWorld(cluster, context);
    await startOperator(world);
    await createPolicy(world, '*', {
      blueGreen: { bakeSeconds: 30, autoPromote: true },
      canary: { steps: [{ weight: 50, pauseSeconds: 30 }], trafficRouter: 'Replicas' },
    });
    const names = ['green', 'canary'];
    const originals = await Promise.all(names.map((name) => createService(world, name)));
    const jobs = await Promise.all([
      deploy(world, 'green', { strategy: 'BlueGreen', tag: 'crumble-2' }),
      deploy(world, 'canary', { strategy: 'Canary', tag: 'crumble-2' }),
    ]);
    const ends = await Promise.all(jobs.map((job) => untilEnd(world, job)));
    expect(ends.map(({ status }) => status?.phase)).toEqual(['RolledBack', 'RolledBack']);
    for (const { status } of ends) expect(status?.failure?.reason).toMatch(/CrashLoop|PodsNotReady/);
    for (const original of originals) await untilAsBefore(world, original);
  });
});

test('what has broken since it was delivered delays no way back, by blue-green and canary neither', async (context) => {
  const world = await createWorld(cluster, context);
  await startOperator(world);
  await createPolicy(world, '*');
  const moving = strategies.filter((strategy) => strategy !== 'Rolling');
  const names = moving.map((strategy) => strategy.toLowerCase());
  await Promise.all(names.map((name) => createService(world, name)));
  const rollingUpdate = { maxSurge: '100%', maxUnavailable: '100%' };
  for (const name of names) {
    const containers = [{ name: 'main', image: `registry.example/${name}:flaky-2` }];
    await world.deployments.patch(name, { spec: { strategy: { rollingUpdate }, template: { spec: { containers } } } });
  }
  for (const name of names) {
    await until(
      `${name} has broken`,
      async () => {
        const { status, metadata } = await world.deployments.get(name);
        const isSeen = status?.observedGeneration === metadata.generation;
        // As long as they come up the reason is another.
        const isRolledOut = status?.conditions?.some(({ reason }) => reason === 'NewReplicaSetAvailable') === true;
        return isSeen && isRolledOut && status.updatedReplicas === 3 && (status.readyReplicas ?? 0) === 0;
      },
      OFTEN,
    );
  }
  const jobs = await Promise.all(
    moving.map((strategy, index) =>
      deploy(world, names[index] ?? '', { strategy, version: '1', operation: 'Rollback' }),
    ),
  );
  const ends = await Promise.all(jobs.map((job) => untilEnd(world, job)));
  for (const [index, { status }] of ends.entries()) {
    const name = names[index] ?? '';
    const message = `Rolling instead of ${moving[index]}, as 0 of 3 pods of Deployment ${name} are ready`;
    expect(status).toMatchObject({ phase: 'Succeeded', strategy: 'Rolling', message: `1 was delivered (${message})` });
    expect(status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'AsRequested', status: 'False', reason: 'WorkloadNotReady', message }),
    );
    const state = { image: `registry.example/${name}:1`, ready: 3, leftovers: [], strategy: { rollingUpdate } };
    await expect.poll(() => stateOf(world, name), { timeout: 60_000, interval: 200 }).toMatchObject(state);
  }
});

test('a version that falls over as soon as it was rolled out is not delivered', async (context) => {
  const world = await createWorld(cluster, context);
  await startOperator(world);
  // All three at once, or those that fall over would keep the rollout from its end.
  const rolling = { ...quick.rolling, maxSurge: 3, bakeSeconds: 10 };
  await createPolicy(world, 'shop', { rolling });
  const original = await createService(world, 'shop');
  const job = await deploy(world, 'shop', { strategy: 'Rolling', tag: 'flaky-2' });
  expect((await untilEnd(world, job)).status).toMatchObject({
    phase: 'RolledBack',
    failure: { reason: 'PodsNotReady' },
    weight: 0,
    actualWeight: 0,
  });
  await untilAsBefore(world, original);
});

describe('checks', () => {
  test('that fail roll the job back, by each strategy, with what was measured in its status', async (context) => {
    const world = await createWorld(cluster, context);
    await startOperator(world);
    const { url } = await serveStatus(context, () => 503);
    await createPolicy(world, '*', { analysis: [webhookCheck(url)] });
    const names = strategies.map((strategy) => strategy.toLowerCase());
    const originals = await Promise.all(names.map((name) => createService(world, name)));
    const guard = await startGuard(world, names);
    const jobs = await Promise.all(strategies.map((strategy) => deploy(world, strategy.toLowerCase(), { strategy })));
    const ends = await Promise.all(jobs.map((job) => untilEnd(world, job)));
    expect(ends.map(({ status }) => [status?.phase, status?.failure?.reason])).toEqual(
      strategies.map(() => ['RolledBack', 'ChecksFailed']),
    );
    for (const { status } of ends) expect(status?.failure?.message).toContain('the webhook answered 503');
    for (const original of originals) await untilAsBefore(world, original);
    expect(guard.faults()).toEqual([]);
  });

  test('may fail as often as they may, and hold the job where the policy says Hold', async (context) => {
    const world = await createWorld(cluster, context);
    await startOperator(world);
    let asked = 0;
    const { url: flaky } = await serveStatus(context, () => (++asked === 1 ? 503 : 200));
    const { url: broken } = await serveStatus(context, () => 503);
    await createPolicy(world, 'flaky', { analysis: [webhookCheck(flaky, { failureLimit: 1, count: 3 })] });
    await createPolicy(world, 'held', { analysis: [webhookCheck(broken, { count: 1 })], onFailure: 'Hold' });
    await createPolicy(world, 'given-up', { analysis: [webhookCheck(broken, { count: 1 })], onFailure: 'Hold' });
    const originals = await Promise.all(['flaky', 'held', 'given-up'].map((name) => createService(world, name)));
    const [flakyJob, heldJob, givenUpJob] = await Promise.all([
      deploy(world, 'flaky'),
      deploy(world, 'held'),
      deploy(world, 'given-up', { strategy: 'BlueGreen' }),
    ]);
    expect((await untilEnd(world, flakyJob)).status?.phase).toBe('Succeeded');
    expect(asked).toBe(3);
    await Promise.all([heldJob, givenUpJob].map((job) => untilJob(world, job, ({ phase }) => phase === 'Paused')));
    await world.jobs.patch(heldJob, { spec: { promote: true } });
    await world.jobs.patch(givenUpJob, { spec: { abort: true } });
    expect((await untilEnd(world, heldJob)).status?.phase).toBe('Succeeded');
    expect((await untilEnd(world, givenUpJob)).status?.phase).toBe('RolledBack');
    const [, , givenUp] = originals;
    if (givenUp !== undefined) await untilAsBefore(world, givenUp);
  });

  test('an abort does not wait for a check that hangs', async (context) => {
    const world = await createWorld(cluster, context);
    await startOperator(world);
    const { url, server } = await serveStatus(context, () => undefined);
    await createPolicy(world, 'shop', { analysis: [webhookCheck(url, { webhook: { url, timeoutSeconds: 300 } })] });
    const original = await createService(world, 'shop');
    const asked = once(server, 'request');
    const job = await deploy(world, 'shop', { strategy: 'BlueGreen' });
    await asked;
    await world.jobs.patch(job, { spec: { abort: true } });
    expect((await untilEnd(world, job)).status).toMatchObject({ phase: 'RolledBack', failure: { reason: 'Aborted' } });
    await untilAsBefore(world, original);
  });

  test('requireHeartbeat waits for the new version to register and to be healthy, and gives up at the deadline', async (context) => {
    const world = await createWorld(cluster, context);
    await startOperator(world);
    const rolling = { ...quick.rolling, progressDeadlineSeconds: 5 };
    await createPolicy(world, 'silent', { requireHeartbeat: true, rolling });
    await createPolicy(world, 'alive', { requireHeartbeat: true });
    const [silent] = await Promise.all(['silent', 'alive'].map((name) => createService(world, name)));
    const alive = await deploy(world, 'alive', { strategy: 'Canary' });
    const unheard = await untilEnd(world, await deploy(world, 'silent'));
    expect(unheard.status?.phase).toBe('RolledBack');
    if (silent !== undefined) await untilAsBefore(world, silent);
    const waiting = await untilJob(world, alive, ({ phase }) => phase === 'Verifying');
    expect(waiting.status?.message).toContain('requireHeartbeat');
    await reportHealthy(world, 'alive', '2');
    expect((await untilEnd(world, alive)).status?.phase).toBe('Succeeded');
  });
});

// Aborts at every stage have a file of their own.
describe('deletion of the job and deletion of the Deployment', () => {
  /** Stages in which a job of the strategy stays long enough with this policy to be met in them. */
  const lingering: PolicyChanges = {
    rolling: quick.rolling,
    blueGreen: { bakeSeconds: 2, autoPromote: false },
    // One pod at both weights, so that full strength has to be waited for.
    canary: { steps: [{ weight: 10, pauseSeconds: 3 }, { weight: 25 }], trafficRouter: 'Replicas' },
    // Counted from the switch, so longer than the bake.
    drainSeconds: 5,
  };
  const moments: readonly { readonly strategy: DeliveryStrategy; readonly stage: string }[] = [
    { strategy: 'Rolling', stage: 'Updating' },
    { strategy: 'BlueGreen', stage: 'BringingUp' },
    { strategy: 'BlueGreen', stage: 'Gate' },
    { strategy: 'BlueGreen', stage: 'Baking' },
    { strategy: 'BlueGreen', stage: 'Draining' },
    { strategy: 'Canary', stage: 'Stepping' },
    { strategy: 'Canary', stage: 'StepPausing' },
    { strategy: 'Canary', stage: 'FullUp' },
    { strategy: 'Canary', stage: 'Draining' },
  ];

  test('deletion at any stage returns everything', async (context) => {
    const world = await createWorld(cluster, context);
    await startOperator(world);
    await createPolicy(world, '*', lingering);
    const cases = moments.map((moment) => ({ ...moment, name: `${moment.strategy}-${moment.stage}`.toLowerCase() }));
    const originals = await Promise.all(cases.map(({ name }) => createService(world, name)));
    const guard = await startGuard(
      world,
      cases.map(({ name }) => name),
    );
    await Promise.all(
      cases.map(async ({ name, strategy, stage }) => {
        const job = await deploy(world, name, { strategy, tag: 'slow-2' });
        await meet(world, job, stage);
        await world.jobs.delete(job);
        await until(`${job} is gone`, async () => (await world.jobs.find(job)) === undefined);
      }),
    );
    for (const original of originals) await untilAsBefore(world, original);
    expect(guard.faults()).toEqual([]);
  });

  test('a Deployment that is deleted ends the job, which removes what it made', async (context) => {
    const world = await createWorld(cluster, context);
    await startOperator(world);
    await createPolicy(world, '*', lingering);
    const cases = moments
      .filter(({ stage }) => ['Updating', 'Gate', 'StepPausing'].includes(stage))
      .map((moment) => ({ ...moment, name: `${moment.strategy}-${moment.stage}`.toLowerCase() }));
    const originals = await Promise.all(cases.map(({ name }) => createService(world, name)));
    const jobs = await Promise.all(
      cases.map(async ({ name, strategy, stage }) => {
        const job = await deploy(world, name, { strategy, tag: 'slow-2' });
        await meet(world, job, stage);
        await world.deployments.delete(name);
        return job;
      }),
    );
    const ends = await Promise.all(jobs.map((job) => untilEnd(world, job)));
    expect(ends.map(({ status }) => [status?.phase, status?.failure?.reason])).toEqual(
      cases.map(() => ['Failed', 'WorkloadDeleted']),
    );
    for (const { service } of originals) {
      const { name } = service.metadata;
      expect((await world.services.get(name)).spec).toEqual(service.spec);
      await expect.poll(async () => (await stateOf(world, name)).leftovers, { timeout: 60_000 }).toEqual([]);
    }
  });

  test('so does a namespace that is deleted, whatever of it is gone first', async (context) => {
    const world = await createWorld(cluster, context);
    const other = await createWorld(cluster, context);
    await startOperator(world, { settings: { ROLLCALL_DELIVERY_NAMESPACES: other.namespace } });
    await createPolicy(world, '*', { ...lingering, canary: { steps: [{ weight: 20 }], trafficRouter: 'Replicas' } });
    // Which object the operator sees go first is chance.
    const cases = (['BlueGreen', 'Canary'] as const).flatMap((strategy) =>
      [1, 2, 3].map((index) => ({ strategy, name: `${strategy.toLowerCase()}-${index}` })),
    );
    await Promise.all(cases.map(({ name }) => createService(other, name)));
    const jobs = await Promise.all(cases.map(({ name, strategy }) => deploy(world, name, { strategy })));
    await Promise.all(jobs.map((job) => untilJob(world, job, ({ phase }) => phase === 'Paused')));
    await cluster.kubectl(['delete', 'namespace', other.namespace, '--wait=false']);
    for (const { status } of await Promise.all(jobs.map((job) => untilEnd(world, job)))) {
      expect(status).toMatchObject({ phase: 'Failed', failure: { reason: 'WorkloadDeleted' }, actualWeight: 0 });
    }
  });
});

describe('a change from outside', () => {
  test('of the pod template ends the job and stays, and the rest is handed back', async (context) => {
    const world = await createWorld(cluster, context);
    await startOperator(world);
    await createPolicy(world, '*', {
      blueGreen: { bakeSeconds: 0, autoPromote: false },
      canary: { steps: [{ weight: 50 }], trafficRouter: 'Replicas' },
    });
    const originals = await Promise.all(strategies.map((strategy) => createService(world, strategy.toLowerCase())));
    const jobs = await Promise.all(
      strategies.map((strategy) => deploy(world, strategy.toLowerCase(), { strategy, tag: 'slow-2' })),
    );
    await Promise.all(
      jobs.map((job, index) =>
        untilJob(world, job, ({ phase, stage }) => (index === 0 ? stage === 'Updating' : phase === 'Paused')),
      ),
    );
    // The template of the rolling one is the job's by now: the edit has to come after that.
    await until(
      'the new version rolls out',
      async () => {
        const { spec } = await world.deployments.get('rolling');
        return spec.template.spec.containers[0]?.image === 'registry.example/rolling:slow-2';
      },
      OFTEN,
    );
    await Promise.all(
      strategies.map((strategy) => {
        const name = strategy.toLowerCase();
        return cluster.kubectl([
          '-n',
          world.namespace,
          'set',
          'image',
          `deployment/${name}`,
          'main=registry.example/by-hand:9',
        ]);
      }),
    );
    const ends = await Promise.all(jobs.map((job) => untilEnd(world, job)));
    expect(ends.map(({ status }) => [status?.phase, status?.failure?.reason])).toEqual(
      strategies.map(() => ['Failed', 'ChangedFromOutside']),
    );
    for (const { deployment, service } of originals) {
      const { name } = deployment.metadata;
      await expect
        .poll(() => stateOf(world, name), { timeout: 60_000, interval: 200 })
        .toMatchObject({
          image: 'registry.example/by-hand:9',
          running: ['registry.example/by-hand:9'],
          selector: service.spec?.selector,
          strategy: deployment.spec.strategy,
          progressDeadlineSeconds: deployment.spec.progressDeadlineSeconds,
          leftovers: [],
        });
    }
  });

  test('of the selector of a Service ends the job and stays, without the pin', async (context) => {
    const world = await createWorld(cluster, context);
    await startOperator(world);
    await createPolicy(world, '*', { blueGreen: { bakeSeconds: 0, autoPromote: false } });
    const original = await createService(world, 'shop');
    const job = await deploy(world, 'shop', { strategy: 'BlueGreen' });
    await untilJob(world, job, ({ phase }) => phase === 'Paused');
    await world.services.patch('shop', { spec: { selector: { tier: 'front' } } });
    const end = await untilEnd(world, job);
    expect(end.status).toMatchObject({ phase: 'Failed', failure: { reason: 'ChangedFromOutside' } });
    expect(end.status?.failure?.message).toContain('Service shop');
    await expect
      .poll(() => stateOf(world, 'shop'), { timeout: 60_000, interval: 200 })
      .toEqual({ ...expectedState(original, '1'), selector: { app: 'shop', tier: 'front' } });
  });
});

describe('a job that must not begin', () => {
  test('without a Deployment, with two, in a namespace that is not allowed, with a binary and nowhere to put it: fails, and nothing is touched', async (context) => {
    const world = await createWorld(cluster, context);
    const other = await createWorld(cluster, context);
    await startOperator(world);
    await createPolicy(world, '*');
    await createService(world, 'one', { labelled: 'twice' });
    await createService(world, 'two', { labelled: 'twice' });
    const untouched = await createService(other, 'elsewhere');
    await createService(world, 'shop');
    const checksum = `sha256:${'0a'.repeat(32)}`;
    const artifact = { type: 'binary', url: 'https://files.example/shop', checksum } as const;
    const before = await Promise.all(['one', 'two', 'shop'].map((name) => world.deployments.get(name)));
    const ends = await Promise.all(
      [
        deploy(world, 'nobody'),
        deploy(world, 'twice'),
        deploy(world, 'elsewhere'),
        deploy(world, 'shop', { artifact }),
      ].map(async (job) => untilEnd(world, await job)),
    );
    expect(ends.map(({ status }) => [status?.phase, status?.reason])).toEqual([
      ['Failed', 'WorkloadNotFound'],
      ['Failed', 'WorkloadAmbiguous'],
      ['Failed', 'NamespaceNotAllowed'],
      ['Failed', 'ArtifactNotSupported'],
    ]);
    expect(ends[1]?.status?.message).toContain(`${world.namespace}/one`);
    expect(ends[2]?.status?.message).toContain(other.namespace);
    const after = await Promise.all(['one', 'two', 'shop'].map((name) => world.deployments.get(name)));
    expect(after.map(({ metadata, spec }) => [metadata.generation, metadata.annotations, spec])).toEqual(
      before.map(({ metadata, spec }) => [metadata.generation, metadata.annotations, spec]),
    );
    expect((await other.deployments.get('elsewhere')).spec).toEqual(untouched.deployment.spec);
  });
});

/** Registers and reports as the program and the registry do between them. */
async function reportHealthy({ cluster, namespace }: World, name: string, version: string): Promise<void> {
  const registrations = resourceClient(cluster.connection, serviceRegistrationKind, namespace);
  const leases = resourceClient(cluster.connection, leaseKind, namespace);
  const { metadata } = await registrations.create({
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'ServiceRegistration',
    metadata: { name, namespace },
    spec: { serviceName: name, url: `http://${name}.example`, capabilities: ['rest'], ttlSeconds: 60, source: 'API' },
  });
  const owner = { apiVersion: 'rollcall.dev/v1alpha1', kind: 'ServiceRegistration', name, uid: metadata.uid ?? '' };
  await leases.create({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace, labels: { 'rollcall.dev/heartbeat': 'true' }, ownerReferences: [owner] },
    spec: { leaseDurationSeconds: 60, renewTime: microTime(new Date()) },
  });
  const health = { status: 'healthy', reportedAt: new Date().toISOString(), details: { version } };
  await registrations.apply(
    { metadata: { name }, status: { health, currentVersion: version } },
    { fieldManager: 'rollcall-registry-health', force: true, subresource: 'status' },
  );
}

/** Waits until the job is in the stage, letting it through the gates before that. */
async function meet(world: World, job: string, wanted: string): Promise<void> {
  await until(
    `${job} is ${wanted}`,
    async () => {
      const { status, spec } = await world.jobs.get(job);
      if (status?.finishedAt !== undefined) throw new Error(`${job} ended before ${wanted}: ${JSON.stringify(status)}`);
      const isPaused = status?.phase === 'Paused' && status.stage !== wanted;
      const isGate = status?.stage === 'Gate' || status?.step === 1;
      if (isPaused && isGate && !spec.promote) await world.jobs.patch(job, { spec: { promote: true } });
      return status?.stage === wanted;
    },
    OFTEN,
  );
}
