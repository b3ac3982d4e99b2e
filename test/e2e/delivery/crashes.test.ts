import type { DeliveryStrategy } from '@rollcall/crds/types.gen.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type OwnCluster, startCluster } from './cluster.ts';
import { startGuard } from './guard.ts';
import { servePods, serveStatus } from './servers.ts';
import { startStageProxy } from './stage-proxy.ts';
import {
  createPolicy,
  createRoute,
  createService,
  createWorld,
  deploy,
  expectedState,
  quick,
  startOperator,
  stateOf,
  untilEnd,
  untilJob,
  type World,
  webhookCheck,
} from './world.ts';

let cluster: OwnCluster;
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster?.[Symbol.asyncDispose]());

interface Scenario {
  readonly strategy: DeliveryStrategy;
  readonly router: 'Replicas' | 'GatewayAPI';
  /** `2` succeeds, `crumble-2` falls over after a while. */
  readonly tag: string;
  readonly phase: 'Succeeded' | 'RolledBack';
  /** Stages that the operator has to have been killed at, among others. */
  readonly stages: readonly string[];
  /**
   * One that it is not killed at: until it is back, the time of the next one is over, and it passes
   * that by.
   */
  readonly spared?: string;
}

const promotion = ['UpdatingWorkload', 'HandingBack', 'DrainingExtra', 'RemovingExtra', 'Finishing'];
const rollback = ['Reverting', 'Restoring', 'RemovingExtra', 'Finishing'];
const canary = ['Preparing', 'Stepping', 'StepVerifying', 'StepPausing', 'FullUp', ...promotion];

const scenarios: readonly Scenario[] = [
  {
    strategy: 'Rolling',
    router: 'Replicas',
    tag: '2',
    phase: 'Succeeded',
    stages: ['Preparing', 'Updating', 'Verifying', 'Finishing'],
  },
  {
    strategy: 'Rolling',
    router: 'Replicas',
    tag: 'unready-2',
    phase: 'RolledBack',
    stages: ['Preparing', 'Updating', 'Reverting', 'Restoring'],
  },
  {
    strategy: 'BlueGreen',
    router: 'Replicas',
    tag: '2',
    phase: 'Succeeded',
    stages: ['Preparing', 'Pinning', 'BringingUp', 'Testing', 'Gate', 'CuttingOver', 'Baking', ...promotion],
  },
  {
    strategy: 'BlueGreen',
    router: 'Replicas',
    tag: 'crumble-2',
    phase: 'RolledBack',
    stages: ['Preparing', 'Pinning', 'BringingUp', ...rollback],
  },
  { strategy: 'Canary', router: 'Replicas', tag: '2', phase: 'Succeeded', stages: ['CuttingOver', ...canary] },
  {
    strategy: 'Canary',
    router: 'Replicas',
    tag: 'crumble-2',
    phase: 'RolledBack',
    stages: ['Preparing', 'Stepping', ...rollback],
  },
  {
    strategy: 'Canary',
    router: 'GatewayAPI',
    tag: '2',
    phase: 'Succeeded',
    stages: ['Routing', 'Draining', ...canary],
    spared: 'CuttingOver',
  },
  {
    strategy: 'Canary',
    router: 'GatewayAPI',
    tag: 'crumble-2',
    phase: 'RolledBack',
    stages: ['Preparing', 'Routing', 'Stepping', ...rollback],
  },
];

/** For pods that never get ready. The way back has as long, with the times that the operator is not there. */
const UNREADY_SECONDS = 40;

/**
 * Kills the operator at every stage of the job, each time right after it has stored the stage, and
 * starts it again, until the job has ended and nothing is held for it any more.
 *
 * @returns the stages.
 */
async function killAtEveryStage(world: World, job: string, spared?: string): Promise<ReadonlySet<string>> {
  const killedAt = new Set<string>();
  const seen = new Set<string>();
  let killed: Promise<void> | undefined;
  const access = await startStageProxy(world, async ({ stage, step = 0, finishedAt }) => {
    const key = `${stage}/${step}`;
    if (stage === undefined || stage === spared || finishedAt !== undefined || seen.has(key)) return true;
    // Whoever waits at a gate is let through once the operator is back.
    if (stage === 'Gate') await world.jobs.patch(job, { spec: { promote: true } });
    seen.add(key);
    killedAt.add(stage);
    killed = operator.kill();
    await killed;
    return false;
  });
  let operator = await startOperator(world, { access, waitUntilReady: false });
  const giveUpAtMs = performance.now() + 240_000;
  for (;;) {
    if (killed !== undefined) {
      await killed;
      killed = undefined;
      operator = await startOperator(world, { access, waitUntilReady: false });
    }
    const { metadata, status } = await world.jobs.get(job);
    if (status?.finishedAt !== undefined && (metadata.finalizers ?? []).length === 0) return killedAt;
    if (performance.now() > giveUpAtMs) throw new Error(`${job} does not end: ${JSON.stringify(status)}`);
    await sleep(100);
  }
}

// As many at once as two cores can start operators for.
test.concurrent.for(scenarios)(
  '$strategy $router, of $tag: killed with SIGKILL at every stage, the job ends $phase',
  async ({ strategy, router, tag, phase, stages, spared }, context) => {
    const { expect } = context;
    const world = await createWorld(cluster, context);
    const { url } = await serveStatus(context, () => 200);
    const port = await servePods(context, async () => 'ready');
    const smokeTest = { path: '/', port, scheme: 'HTTP', timeoutSeconds: 5 } as const;
    await createPolicy(world, 'shop', {
      drainSeconds: 1,
      rolling: { ...quick.rolling, progressDeadlineSeconds: tag.startsWith('unready') ? UNREADY_SECONDS : 120 },
      blueGreen: { bakeSeconds: 1, autoPromote: false, smokeTest },
      analysis: [webhookCheck(url)],
      canary: { steps: [25, 50].map((weight) => ({ weight, pauseSeconds: 1 })), trafficRouter: router },
    });
    const original = await createService(world, 'shop');
    if (router === 'GatewayAPI') await createRoute(world, 'shop');
    const route = await world.routes.find('shop');
    const guard = await startGuard(world, ['shop']);
    const job = await deploy(world, 'shop', { strategy, tag, version: tag });
    const killedAt = await killAtEveryStage(world, job, spared);
    const end = await untilEnd(world, job);
    expect(end.status?.phase, JSON.stringify(end.status)).toBe(phase);
    expect([...killedAt]).toEqual(expect.arrayContaining([...stages]));
    const isNew = phase === 'Succeeded';
    await expect
      .poll(() => stateOf(world, 'shop'), { timeout: 60_000, interval: 200 })
      .toEqual(expectedState(original, isNew ? tag : '1'));
    const { spec } = await world.deployments.get('shop');
    expect({ ...spec, template: isNew ? original.deployment.spec.template : spec.template }).toEqual(
      original.deployment.spec,
    );
    expect((await world.routes.find('shop'))?.spec).toEqual(route?.spec);
    // Pods that fall over by themselves are not the job's doing.
    expect(tag.startsWith('crumble') ? [] : guard.faults()).toEqual([]);
  },
);

test('the API server killed in the middle: a job of each strategy ends as it should, and so does one that is rolled back', async (context) => {
  const world = await createWorld(cluster, context);
  await createPolicy(world, '*', {
    drainSeconds: 1,
    blueGreen: { bakeSeconds: 3, autoPromote: true },
    canary: { steps: [{ weight: 50, pauseSeconds: 3 }], trafficRouter: 'Replicas' },
  });
  await startOperator(world);
  const strategies = ['Rolling', 'BlueGreen', 'Canary'] as const;
  const names = [...strategies.map((strategy) => strategy.toLowerCase()), 'broken'];
  const originals = await Promise.all(names.map((name) => createService(world, name)));
  const jobs = await Promise.all([
    ...strategies.map((strategy) =>
      deploy(world, strategy.toLowerCase(), { strategy, tag: 'slow-2', version: 'slow-2' }),
    ),
    deploy(world, 'broken', { strategy: 'BlueGreen', tag: 'crumble-2' }),
  ]);
  await Promise.all(jobs.map((job) => untilJob(world, job, ({ phase }) => phase !== 'Pending')));
  await sleep(2000);
  await cluster.controlPlane.stopApiServer();
  await sleep(3000);
  await cluster.controlPlane.startApiServer();
  const ends = await Promise.all(jobs.map((job) => untilEnd(world, job)));
  expect(ends.map(({ status }) => status?.phase)).toEqual(['Succeeded', 'Succeeded', 'Succeeded', 'RolledBack']);
  for (const [index, original] of originals.entries()) {
    await expect
      .poll(() => stateOf(world, names[index] ?? ''), { timeout: 60_000, interval: 200 })
      .toEqual(expectedState(original, index < strategies.length ? 'slow-2' : '1'));
  }
});
