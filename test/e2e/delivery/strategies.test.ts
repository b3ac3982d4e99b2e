import { labels } from '@rollcall/crds/kinds.ts';
import type { DeliveryStrategy } from '@rollcall/crds/types.gen.ts';
import { type HttpRoute, podKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type Cluster, joinCluster } from './cluster.ts';
import { startGuard } from './guard.ts';
import { servePods } from './servers.ts';
import {
  createPolicy,
  createService,
  createWorld,
  deploy,
  expectedState,
  imagesOf,
  isReady,
  metricOf,
  quick,
  startOperator,
  stateOf,
  until,
  untilEnd,
  untilJob,
  type World,
} from './world.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await joinCluster(inject('deliveryCluster'));
});
afterAll(() => cluster?.[Symbol.asyncDispose]());

const strategies: readonly DeliveryStrategy[] = ['Rolling', 'BlueGreen', 'Canary'];
const nameOf = (strategy: DeliveryStrategy) => strategy.toLowerCase();

async function untilServed(world: World, name: string, expected: object): Promise<void> {
  await expect.poll(() => stateOf(world, name), { timeout: 60_000, interval: 200 }).toEqual(expected);
}

/** No pod of the service may be evicted. Returns when the budget knows of them all. */
async function guardByBudget({ cluster, namespace }: World, name: string): Promise<void> {
  const options = [`--namespace=${namespace}`, `--selector=app=${name}`, '--max-unavailable=0'];
  await cluster.kubectl(['create', 'poddisruptionbudget', name, ...options]);
  const condition = '--for=jsonpath={.status.expectedPods}=3';
  await cluster.kubectl([
    'wait',
    `--namespace=${namespace}`,
    `poddisruptionbudget/${name}`,
    condition,
    '--timeout=60s',
  ]);
}

/**
 * Asks for the eviction of each pod of the service that is ready; Kubernetes lets others go, budget
 * or not.
 *
 * @returns those that the budget did not keep, and why, where they were more than there were beyond
 * the three that are asked for.
 */
async function evictAll(world: World, name: string): Promise<string[]> {
  const { cluster, namespace } = world;
  const ready = async () => (await world.list(podKind, `app=${name}`)).filter(isReady);
  const before = await ready();
  const evicted: string[] = [];
  for (const { metadata } of before) {
    const path = `/api/v1/namespaces/${namespace}/pods/${metadata.name}/eviction`;
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: metadata.name, namespace } };
    const outcome = await cluster
      .kubectl(['create', '--raw', path, '-f', '-'], { stdin: JSON.stringify(eviction) })
      .then(
        () => 'evicted',
        (error: unknown) => String(error),
      );
    // One that went by itself meanwhile is not found.
    if (!/disruption budget|not found/i.test(outcome)) evicted.push(`${metadata.name}: ${outcome}`);
  }
  // Another one may have become ready meanwhile.
  const most = Math.max(before.length, (await ready()).length + evicted.length);
  return evicted.length > Math.max(0, most - 3) ? evicted : [];
}

describe('a job that succeeds', () => {
  test("by each strategy: the new version runs in the user's Deployment, nothing else is left, no pod was ever missed", async (context) => {
    const world = await createWorld(cluster, context);
    const operator = await startOperator(world);
    await createPolicy(world, '*');
    const originals = await Promise.all(strategies.map((strategy) => createService(world, nameOf(strategy))));
    const guard = await startGuard(world, strategies.map(nameOf));
    const jobs = await Promise.all(strategies.map((strategy) => deploy(world, nameOf(strategy), { strategy })));
    const ended = await Promise.all(jobs.map((job) => untilEnd(world, job)));
    expect(ended.map(({ status }) => [status?.phase, status?.oldVersion])).toEqual(
      strategies.map(() => ['Succeeded', '1']),
    );
    for (const original of originals) {
      await untilServed(world, original.deployment.metadata.name, expectedState(original, '2'));
    }
    expect(guard.faults()).toEqual([]);

    // Back again, as a rollback does it, and forward by the same way once more.
    const back = await Promise.all(
      strategies.map((strategy) => deploy(world, nameOf(strategy), { strategy, version: '1', operation: 'Rollback' })),
    );
    const returned = await Promise.all(back.map((job) => untilEnd(world, job)));
    expect(returned.map(({ status }) => [status?.phase, status?.oldVersion])).toEqual(
      strategies.map(() => ['Succeeded', '2']),
    );
    for (const original of originals) {
      const state = { ...expectedState(original, '1'), version: '1' };
      await untilServed(world, original.deployment.metadata.name, state);
    }
    expect(guard.faults()).toEqual([]);
    expect(await metricOf(operator, 'rollcall_delivery_jobs', { phase: 'Succeeded' })).toBe(6);
    const ends = await Promise.all(
      strategies.map((strategy) =>
        metricOf(operator, 'rollcall_delivery_job_duration_seconds_count', { strategy, outcome: 'Succeeded' }),
      ),
    );
    expect(ends).toEqual([2, 2, 2]);
  });

  test('writes its phases, steps and weights as it goes, and Events that report them', async (context) => {
    const world = await createWorld(cluster, context);
    await startOperator(world);
    await createPolicy(world, 'shop');
    await createService(world, 'shop', { replicas: 4 });
    const job = await deploy(world, 'shop', { strategy: 'Canary' });
    await untilEnd(world, job);
    const { status, metadata } = await world.jobs.get(job);
    expect(status).toMatchObject({ phase: 'Succeeded', weight: 100, actualWeight: 100, workload: { name: 'shop' } });
    expect(status?.conditions).toEqual(
      expect.arrayContaining([expect.objectContaining({ type: 'Succeeded', status: 'True' })]),
    );
    await until('the Events are there', async () => (await world.events(job)).length >= 2);
    const milestones = status?.milestones?.map(({ phase, step }) => `${phase} ${step ?? ''}`.trim()) ?? [];
    expect(new Set(milestones).size).toBe(milestones.length);
    const steps = milestones.filter((milestone) => milestone.startsWith('Progressing'));
    expect(steps).toEqual(['Progressing', ...quick.canary.steps.map((_, step) => `Progressing ${step}`)]);
    expect(milestones.at(-1)).toMatch(/^Promoting/);
    // What it saved goes with the job.
    expect(await world.revisions.find(job)).toBeDefined();
    expect(metadata.finalizers ?? []).toEqual([]);
    await world.jobs.delete(job);
    await until('the saved state is collected', async () => (await world.revisions.find(job)) === undefined);
  });

  test('the pods of a service that an autoscaler moves meanwhile are as many as it asks for', async (context) => {
    const world = await createWorld(cluster, context);
    await startOperator(world);
    await createPolicy(world, '*', {
      blueGreen: { bakeSeconds: 2, autoPromote: true },
      canary: { steps: [{ weight: 50, pauseSeconds: 2 }], trafficRouter: 'Replicas' },
    });
    const names = strategies.map(nameOf);
    await Promise.all(names.map((name) => createService(world, name, { replicas: 2 })));
    const jobs = await Promise.all(
      strategies.map((strategy) => deploy(world, nameOf(strategy), { strategy, tag: 'slow-2', version: '2' })),
    );
    await Promise.all(
      jobs.map((job) => untilJob(world, job, ({ stage }) => stage !== 'Preparing' && stage !== 'Queued')),
    );
    await Promise.all(names.map((name) => world.deployments.patch(name, { spec: { replicas: 5 } })));
    await Promise.all(jobs.map((job) => untilEnd(world, job)));
    for (const name of names) {
      await expect.poll(async () => (await stateOf(world, name)).ready, { timeout: 60_000 }).toBe(5);
      expect(await stateOf(world, name)).toMatchObject({ running: [`registry.example/${name}:slow-2`], leftovers: [] });
    }
    for (const job of jobs) expect((await world.jobs.get(job)).status?.phase).toBe('Succeeded');
  });

  test('a canary with maxSurge makes do with one pod more, and says what share that is', async (context) => {
    const world = await createWorld(cluster, context);
    await startOperator(world);
    await createPolicy(world, 'shop', {
      canary: { maxSurge: 1, steps: [{ weight: 50, pauseSeconds: 2 }], trafficRouter: 'Replicas' },
    });
    const original = await createService(world, 'shop');
    await cluster.kubectl(['create', 'quota', 'pods', `--namespace=${world.namespace}`, '--hard=pods=4']);
    const name = await deploy(world, 'shop', { strategy: 'Canary', tag: 'slow-2', version: '2' });
    const { status } = await untilJob(world, name, ({ stage }) => stage === 'StepPausing');
    expect(status?.message).toContain('2 has 25 % of the traffic (of 50 % asked for)');
    expect(status?.conditions?.find(({ type }) => type === 'AsRequested')).toMatchObject({ reason: 'SurgeLimited' });
    let fewest = Infinity;
    await until('the job ends', async () => {
      const pods = await world.list(podKind, 'app=shop');
      fewest = Math.min(fewest, pods.filter(isReady).length);
      return (await world.jobs.get(name)).status?.finishedAt !== undefined;
    });
    expect((await untilEnd(world, name)).status?.phase).toBe('Succeeded');
    expect(fewest).toBeGreaterThanOrEqual(3);
    await untilServed(world, 'shop', { ...expectedState(original, 'slow-2'), version: '2' });
  });

  test('a PodDisruptionBudget keeps guarding the pods of a service, old and new, and holds no job up', async (context) => {
    const world = await createWorld(cluster, context);
    await startOperator(world);
    await createPolicy(world, '*', {
      blueGreen: { bakeSeconds: 0, autoPromote: false },
      canary: { steps: [{ weight: 50 }], trafficRouter: 'Replicas' },
    });
    const names = strategies.map(nameOf);
    await Promise.all(names.map((name) => createService(world, name)));
    await Promise.all(names.map((name) => guardByBudget(world, name)));
    const jobs = await Promise.all(
      strategies.map((strategy) => deploy(world, nameOf(strategy), { strategy, tag: 'slow-2', version: '2' })),
    );
    const [rolling = '', ...gated] = jobs;
    await untilJob(world, rolling, ({ stage }) => stage === 'Updating');
    await expect(evictAll(world, 'rolling')).resolves.toEqual([]);
    for (const job of gated) {
      const { spec } = await untilJob(world, job, ({ phase }) => phase === 'Paused');
      await expect(evictAll(world, spec.serviceName)).resolves.toEqual([]);
      await world.jobs.patch(job, { spec: { promote: true } });
    }
    for (const job of jobs) expect((await untilEnd(world, job)).status?.phase).toBe('Succeeded');
    for (const name of names) {
      await expect.poll(async () => (await stateOf(world, name)).ready, { timeout: 60_000 }).toBe(3);
      await expect(evictAll(world, name)).resolves.toEqual([]);
    }
  });

  test('a smoke test is asked of the pods of the new version before they get traffic', async (context) => {
    const world = await createWorld(cluster, context);
    await startOperator(world);
    const asked: { readonly host: string | undefined; readonly pinned: string | undefined }[] = [];
    const port = await servePods(context, async (host) => {
      const service = await world.services.get('shop');
      asked.push({ host, pinned: service.spec?.selector?.['pod-template-hash'] });
      return 'version 2';
    });
    const smokeTest = { path: '/smoke', port, scheme: 'HTTP', timeoutSeconds: 5, bodyContains: 'version 2' } as const;
    await createPolicy(world, 'shop', { blueGreen: { ...quick.blueGreen, smokeTest } });
    await createService(world, 'shop');
    const stableHash = await hashOfPods(world, 'shop');
    const job = await untilEnd(world, await deploy(world, 'shop', { strategy: 'BlueGreen' }));
    expect(job.status).toMatchObject({ phase: 'Succeeded' });
    expect(new Set(asked.map(({ host }) => host)).size).toBe(3);
    expect(new Set(asked.map(({ pinned }) => pinned))).toEqual(new Set([stableHash]));
  });
});

describe('a gate', () => {
  test('pauses the job until promote is set, once for each gate; abort returns everything', async (context) => {
    const world = await createWorld(cluster, context);
    await startOperator(world);
    await createPolicy(world, '*', {
      blueGreen: { bakeSeconds: 0, autoPromote: false },
      canary: { steps: [{ weight: 25 }, { weight: 50 }], trafficRouter: 'Replicas' },
    });
    const [green, canary, aborted] = await Promise.all(
      ['green', 'canary', 'aborted'].map((name) => createService(world, name)),
    );
    const [greenJob, canaryJob, abortedJob] = await Promise.all([
      deploy(world, 'green', { strategy: 'BlueGreen' }),
      deploy(world, 'canary', { strategy: 'Canary' }),
      deploy(world, 'aborted', { strategy: 'BlueGreen' }),
    ]);
    await Promise.all(
      [greenJob, canaryJob, abortedJob].map((job) => untilJob(world, job, ({ phase }) => phase === 'Paused')),
    );
    expect((await stateOf(world, 'green')).running).toHaveLength(2);
    expect((await world.jobs.get(canaryJob)).status).toMatchObject({ step: 0, weight: 25, actualWeight: 25 });

    await Promise.all([greenJob, canaryJob].map((job) => world.jobs.patch(job, { spec: { promote: true } })));
    await world.jobs.patch(abortedJob, { spec: { abort: true } });
    await untilJob(world, canaryJob, ({ phase, step }) => phase === 'Paused' && step === 1);
    const second = await world.jobs.get(canaryJob);
    expect(second.spec.promote).toBe(false);
    expect(second.status).toMatchObject({ weight: 50, actualWeight: 50 });
    const table = await cluster.kubectl(['get', 'deliveryjobs', canaryJob, '--namespace', world.namespace]);
    const [head = '', row = ''] = table.split('\n');
    expect(head.trim().split(/ {2,}/)).toEqual(['NAME', 'PHASE', 'REASON', 'WEIGHT', 'ACTUAL', 'AGE']);
    expect(row).toMatch(/ Paused +\S* +50 +50 +\S+/);
    await world.jobs.patch(canaryJob, { spec: { promote: true } });
    const ends = await Promise.all([greenJob, canaryJob, abortedJob].map((job) => untilEnd(world, job)));
    expect(ends.map(({ status }) => status?.phase)).toEqual(['Succeeded', 'Succeeded', 'RolledBack']);
    expect(ends[2]?.status?.failure?.reason).toBe('Aborted');
    if (green === undefined || canary === undefined || aborted === undefined) throw new Error('unreachable');
    await untilServed(world, 'green', expectedState(green, '2'));
    await untilServed(world, 'canary', expectedState(canary, '2'));
    await untilServed(world, 'aborted', expectedState(aborted, '1'));
  });
});

describe('jobs of one service', () => {
  test('run one at a time in order of creation, those of others beside them', async (context) => {
    const world = await createWorld(cluster, context);
    await startOperator(world);
    await createPolicy(world, '*');
    const original = await createService(world, 'shop');
    await createService(world, 'other');
    const jobs: string[] = [];
    for (const version of ['2', '3', '4']) {
      jobs.push(await deploy(world, 'shop', { version, tag: `slow-${version}`, strategy: 'Rolling' }));
    }
    const [first = '', second = '', third = ''] = jobs;
    await untilJob(world, first, ({ phase }) => phase === 'Progressing');
    await untilJob(world, second, ({ phase }) => phase === 'Pending');
    const other = await untilEnd(world, await deploy(world, 'other'));
    expect(other.status?.phase).toBe('Succeeded');
    // One that waits can be taken out of the queue, by abort or by deletion.
    await world.jobs.patch(second, { spec: { abort: true } });
    expect((await untilEnd(world, second)).status).toMatchObject({ phase: 'RolledBack', reason: 'Cancelled' });
    const ended = [await untilEnd(world, first), await untilEnd(world, third)];
    expect(ended.map(({ status }) => [status?.phase, status?.oldVersion])).toEqual([
      ['Succeeded', '1'],
      ['Succeeded', '2'],
    ]);
    const [firstEnd = '', thirdStart = ''] = [ended[0]?.status?.finishedAt, ended[1]?.status?.startedAt];
    expect(Date.parse(thirdStart)).toBeGreaterThanOrEqual(Date.parse(firstEnd));
    await untilServed(world, 'shop', { ...expectedState(original, 'slow-4'), version: '4' });
  });

  test('a later deploy replaces waiting ones, where the policy says so', async (context) => {
    const world = await createWorld(cluster, context);
    await startOperator(world);
    await createPolicy(world, 'shop', { supersede: true, blueGreen: { bakeSeconds: 0, autoPromote: false } });
    await createService(world, 'shop');
    const running = await deploy(world, 'shop', { version: '2', strategy: 'BlueGreen' });
    await untilJob(world, running, ({ phase }) => phase === 'Paused');
    const waiting = await deploy(world, 'shop', { version: '3', name: 'a-waits' });
    await untilJob(world, waiting, ({ phase }) => phase === 'Pending');
    const latest = await deploy(world, 'shop', { version: '4', name: 'b-latest' });
    expect((await untilEnd(world, waiting)).status).toMatchObject({ phase: 'RolledBack', reason: 'Superseded' });
    await world.jobs.patch(running, { spec: { promote: true } });
    expect((await untilEnd(world, running)).status?.phase).toBe('Succeeded');
    expect((await untilEnd(world, latest)).status).toMatchObject({ phase: 'Succeeded', oldVersion: '2' });
  });
});

describe('a canary behind a Gateway', () => {
  test('gets its weights by HTTPRoutes, whose rules are afterwards as they were', async (context) => {
    const world = await createWorld(cluster, context);
    await startOperator(world);
    await createPolicy(world, '*', {
      canary: { steps: [{ weight: 20 }, { weight: 50, pauseSeconds: 0 }], trafficRouter: 'GatewayAPI' },
    });
    const [good, aborted] = [await createService(world, 'good'), await createService(world, 'aborted')];
    const before = [await createRoute(world, 'good'), await createRoute(world, 'aborted')];
    const jobs = await Promise.all(['good', 'aborted'].map((name) => deploy(world, name, { strategy: 'Canary' })));
    const [goodJob = '', abortedJob = ''] = jobs;
    await Promise.all(jobs.map((job) => untilJob(world, job, ({ phase }) => phase === 'Paused')));
    // 9 : 1 of which 20 % of the nine go to the canary: 36 : 9 : 5.
    expect(shares(await world.routes.get('good'))).toEqual([
      ['good', 36],
      ['good-canary', 9],
      ['elsewhere', 5],
    ]);
    const canaryService = await world.services.get('good-canary');
    expect(canaryService.metadata.labels?.[labels.job]).toBeDefined();
    const selected = Object.entries(canaryService.spec?.selector ?? {}).map((pair) => pair.join('='));
    expect(await imagesOf(world, selected.join(','))).toEqual(['registry.example/good:2']);
    await world.jobs.patch(goodJob, { spec: { promote: true } });
    await world.jobs.patch(abortedJob, { spec: { abort: true } });
    const ends = await Promise.all(jobs.map((job) => untilEnd(world, job)));
    expect(ends.map(({ status }) => status?.phase)).toEqual(['Succeeded', 'RolledBack']);
    await untilServed(world, 'good', expectedState(good, '2'));
    await untilServed(world, 'aborted', expectedState(aborted, '1'));
    for (const route of before) {
      expect((await world.routes.get(route.metadata.name)).spec).toEqual(route.spec);
    }
  });
});

const rules = (name: string) => [
  {
    matches: [{ path: { type: 'PathPrefix', value: '/' } }],
    filters: [{ type: 'RequestHeaderModifier', requestHeaderModifier: { add: [{ name: 'x-kept', value: 'yes' }] } }],
    backendRefs: [
      { name, port: 80, weight: 9 },
      { name: 'elsewhere', port: 80, weight: 1 },
    ],
  },
];

const createRoute = (world: World, name: string): Promise<HttpRoute> =>
  world.routes.create({
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: { name, namespace: world.namespace },
    spec: { parentRefs: [{ name: 'gateway' }], rules: rules(name) },
  });

const shares = (route: HttpRoute) =>
  (route.spec.rules ?? []).flatMap(({ backendRefs }) => (backendRefs ?? []).map(({ name, weight }) => [name, weight]));

async function hashOfPods(world: World, name: string): Promise<string | undefined> {
  const [pod] = await world.list({ apiVersion: 'v1', kind: 'Pod', plural: 'pods', namespaced: true }, `app=${name}`);
  return pod?.metadata.labels?.['pod-template-hash'];
}
