import type { DeliveryStrategy } from '@rollcall/crds/types.gen.ts';
import { afterAll, beforeAll, inject, test } from 'vitest';
import { type Cluster, joinCluster } from './cluster.ts';
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
  startOperator,
  stateOf,
  untilEnd,
  webhookCheck,
} from './world.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await joinCluster(inject('deliveryCluster'));
});
afterAll(() => cluster?.[Symbol.asyncDispose]());

interface Scenario {
  readonly strategy: DeliveryStrategy;
  readonly router: 'Replicas' | 'GatewayAPI';
  /** All that a job which succeeds comes through. */
  readonly stages: readonly string[];
}

const promotion = ['Draining', 'UpdatingWorkload', 'HandingBack', 'DrainingExtra', 'RemovingExtra', 'Finishing'];
const canary = ['Stepping', 'StepVerifying', 'StepPausing', 'FullUp', 'CuttingOver'];

const scenarios: readonly Scenario[] = [
  { strategy: 'Rolling', router: 'Replicas', stages: ['Preparing', 'Updating', 'Verifying', 'Finishing'] },
  {
    strategy: 'BlueGreen',
    router: 'Replicas',
    stages: ['Preparing', 'Pinning', 'BringingUp', 'Testing', 'Gate', 'CuttingOver', 'Baking', ...promotion],
  },
  { strategy: 'Canary', router: 'Replicas', stages: ['Preparing', ...canary, ...promotion] },
  { strategy: 'Canary', router: 'GatewayAPI', stages: ['Preparing', 'Routing', ...canary, ...promotion] },
];

test.concurrent.for(scenarios)(
  '$strategy $router: aborted as soon as it is in a stage, whichever, the job returns everything',
  async ({ strategy, router, stages }, context) => {
    const { expect } = context;
    const world = await createWorld(cluster, context);
    const { url } = await serveStatus(context, () => 200);
    const port = await servePods(context, async () => 'ready');
    await createPolicy(world, '*', {
      // Counted from the switch, so longer than the bake.
      drainSeconds: 3,
      blueGreen: {
        bakeSeconds: 1,
        autoPromote: false,
        smokeTest: { path: '/', port, scheme: 'HTTP', timeoutSeconds: 5 },
      },
      analysis: [webhookCheck(url, { count: 1 })],
      canary: { steps: [{ weight: 34, pauseSeconds: 1 }], trafficRouter: router },
    });
    const names = stages.map((stage) => stage.toLowerCase());
    const originals = await Promise.all(names.map((name) => createService(world, name)));
    if (router === 'GatewayAPI') await Promise.all(names.map((name) => createRoute(world, name)));
    const routes = await Promise.all(names.map((name) => world.routes.find(name)));
    const abortedAt = new Map<string, string>();
    const access = await startStageProxy(world, async ({ stage = '' }, job) => {
      const { serviceName, promote } = (await world.jobs.get(job)).spec;
      if (stage.toLowerCase() === serviceName && !abortedAt.has(serviceName)) {
        abortedAt.set(serviceName, stage);
        await world.jobs.patch(job, { spec: { abort: true } });
      } else if (stage === 'Gate' && !promote) {
        await world.jobs.patch(job, { spec: { promote: true } });
      }
      return true;
    });
    await startOperator(world, { access });
    const guard = await startGuard(world, names);
    const jobs = await Promise.all(names.map((name) => deploy(world, name, { strategy })));
    const ends = await Promise.all(jobs.map((job) => untilEnd(world, job)));
    expect([...abortedAt.values()].toSorted()).toEqual(stages.toSorted());
    expect(ends.map(({ spec, status }) => [spec.serviceName, status?.phase, status?.failure?.reason])).toEqual(
      // Nothing has been changed yet while it prepares.
      names.map((name) => [name, 'RolledBack', name === 'preparing' ? 'Cancelled' : 'Aborted']),
    );
    for (const [index, original] of originals.entries()) {
      const name = names[index] ?? '';
      await expect
        .poll(() => stateOf(world, name), { timeout: 60_000, interval: 200 })
        .toEqual(expectedState(original, '1'));
      expect((await world.deployments.get(name)).spec).toEqual(original.deployment.spec);
      expect((await world.routes.find(name))?.spec).toEqual(routes[index]?.spec);
    }
    expect(guard.faults()).toEqual([]);
  },
);
