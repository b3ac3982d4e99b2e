import type { DeliveryStrategy } from '@rollcall/crds/types.gen.ts';
import { describe, test } from 'vitest';
import { openDeliveryStage, type PolicyChanges, type StageOptions } from './support/delivery.ts';
import { noCluster } from './support/namespace.ts';
import { expectNoFailure, expectOnly, expectReturn, expectShare, untilAnswered } from './support/traffic.ts';

interface Case {
  readonly strategy: DeliveryStrategy;
  readonly policy: PolicyChanges;
  /** What is different where the job is aborted: it must not be over too soon. */
  readonly aborted?: Partial<StageOptions>;
  /** In which stage the new version has some of the traffic, or all. */
  readonly exposed: string;
  /** Milliseconds from the decision to roll back to the last answer of the new version. */
  readonly rollbackLimitMs: number;
}

const cases: readonly Case[] = [
  {
    strategy: 'Rolling',
    // All pods of the old version can come back at once.
    policy: { rolling: { maxSurge: '100%', maxUnavailable: 0 } },
    aborted: { policy: { rolling: { maxSurge: 1, maxUnavailable: 0 } }, env: { READY_DELAY_MS: '2000' } },
    exposed: 'Updating',
    rollbackLimitMs: 10_000,
  },
  { strategy: 'BlueGreen', policy: { blueGreen: { bakeSeconds: 15 } }, exposed: 'Baking', rollbackLimitMs: 2000 },
  {
    strategy: 'Canary',
    policy: { canary: { steps: [{ weight: 50, pauseSeconds: 15 }] } },
    exposed: 'StepPausing',
    rollbackLimitMs: 10_000,
  },
];

/** A check that pods of the new version fail although they serve their clients well. */
const failingCheck = {
  analysis: [{ name: 'old', http: { port: 8080, bodyContains: 'v1' }, initialDelaySeconds: 5, intervalSeconds: 1 }],
};

/**
 * Five jobs at once, each with a namespace, a client and an operator of its own: they wait for most
 * of their time.
 */
describe.skipIf(noCluster).concurrent('a client that keeps its connections sees no failed request while a job', () => {
  describe('succeeds', () => {
    test.for(cases)('$strategy', async ({ strategy, policy }, { expect }) => {
      await using stage = await openDeliveryStage({ policy });
      const before = await stage.load();
      const job = await stage.deploy(strategy);
      expect((await job.ended()).status).toMatchObject({ phase: 'Succeeded' });
      await expectNoFailure(stage, before, strategy);
      await expectOnly('v2', stage);
    });

    test('a canary gets the share of the requests that its pods allow', async ({ expect }) => {
      // Beside four pods, one is a fifth of all and four are half. Each step ends by a promote: a busy
      // machine measures for longer than a pause lasts.
      const steps = [{ weight: 20 }, { weight: 50 }];
      // A node chooses a pod for each connection: with ten requests on each, one in thirty shares
      // would be off by more than is tolerated.
      await using stage = await openDeliveryStage({ policy: { canary: { steps } }, requestsPerConnection: 2 });
      const job = await stage.deploy('Canary');
      for (const { weight } of steps) {
        await job.reachedWeight(weight);
        await expectShare({ stage, weight, title: 'canary' });
        await job.promote();
      }
      expect((await job.ended()).status).toMatchObject({ phase: 'Succeeded' });
    });
  });

  describe('is aborted', () => {
    test.for(cases)('$strategy', async ({ aborted, exposed, rollbackLimitMs, ...each }, { expect }) => {
      const { strategy, policy } = each;
      await using stage = await openDeliveryStage({ policy, ...aborted });
      const before = await stage.load();
      const job = await stage.deploy(strategy);
      await job.reached(exposed);
      await untilAnswered('v2', stage, before);
      const decidedAt = Date.now();
      await job.abort();
      expect((await job.ended()).status).toMatchObject({ phase: 'RolledBack' });
      await expectReturn({ stage, decidedAt, before, title: strategy, limitMs: rollbackLimitMs });
    });
  });

  describe('fails its checks and is rolled back', () => {
    test.for(cases)('$strategy', async ({ strategy, policy, rollbackLimitMs }, { expect }) => {
      await using stage = await openDeliveryStage({ policy: { ...policy, ...failingCheck } });
      const before = await stage.load();
      const job = await stage.deploy(strategy);
      expect((await job.ended()).status).toMatchObject({ phase: 'RolledBack' });
      const decidedAt = job.enteredPhase('RollingBack');
      await expectReturn({ stage, decidedAt, before, title: strategy, limitMs: rollbackLimitMs });
    });
  });
});
