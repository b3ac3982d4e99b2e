import { availableParallelism, loadavg } from 'node:os';
import type { DeliveryStrategy } from '@rollcall/crds/types.gen.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { describe, expect, test } from 'vitest';
import {
  type DeliveryStage,
  loadUntil,
  openDeliveryStage,
  type PolicyChanges,
  type StageOptions,
} from './support/delivery.ts';
import { countRequests, failuresSince, type LoadReport, shareOf } from './support/load-report.ts';
import { noCluster } from './support/namespace.ts';

/** Requests that each job is watched for, at least. */
const REQUESTS = 50_000;

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
    policy: { rolling: { maxSurge: '100%' } },
    aborted: { policy: { rolling: { maxSurge: 1 } }, env: { READY_DELAY_MS: '2000' } },
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

describe.skipIf(noCluster)('a client that keeps its connections sees no failed request', () => {
  test.each(cases)('while $strategy delivers', async ({ strategy, policy }) => {
    await using stage = await openDeliveryStage({ policy });
    const before = await stage.load();
    const job = await stage.deploy(strategy);
    expect((await job.ended()).status).toMatchObject({ phase: 'Succeeded' });
    await expectNoFailure(stage, before, strategy);
    await expectOnly('v2', stage);
  });

  test.each(cases)('while $strategy is aborted', async ({ strategy, policy, aborted, exposed, rollbackLimitMs }) => {
    await using stage = await openDeliveryStage({ policy, ...aborted });
    const before = await stage.load();
    const job = await stage.deploy(strategy);
    await job.reached(exposed);
    await untilAnswered('v2', stage, before);
    const decidedAt = Date.now();
    await job.abort();
    expect((await job.ended()).status).toMatchObject({ phase: 'RolledBack' });
    await expectReturn({ stage, decidedAt, before, strategy, rollbackLimitMs });
  });

  test.each(cases)('while $strategy fails its checks and rolls back', async ({ strategy, policy, rollbackLimitMs }) => {
    await using stage = await openDeliveryStage({ policy: { ...policy, ...failingCheck } });
    const before = await stage.load();
    const job = await stage.deploy(strategy);
    expect((await job.ended()).status).toMatchObject({ phase: 'RolledBack' });
    await expectReturn({ stage, decidedAt: job.enteredPhase('RollingBack'), before, strategy, rollbackLimitMs });
  });
});

test.skipIf(noCluster)('a canary gets the share of the requests that its pods allow', async () => {
  // Beside four pods, one is a fifth of all and four are half.
  const steps = [
    { weight: 20, pauseSeconds: 25 },
    { weight: 50, pauseSeconds: 25 },
  ];
  await using stage = await openDeliveryStage({ policy: { canary: { steps } } });
  const job = await stage.deploy('Canary');
  for (const { weight } of steps) {
    await job.reachedWeight(weight);
    // For connections from before to have been used up.
    await sleep(5000);
    const from = await stage.load();
    await sleep(15_000);
    const share = shareOf('v2', from, await stage.load());
    console.log(`canary of weight ${weight}: ${share.toFixed(1)} % of the requests`);
    expect(Math.abs(share - weight)).toBeLessThan(5);
  }
  await job.ended();
});

async function untilAnswered(version: string, stage: DeliveryStage, since: LoadReport): Promise<void> {
  const known = since.answers[version]?.count ?? 0;
  const answered = async (): Promise<number> => ((await stage.load()).answers[version]?.count ?? 0) - known;
  await expect.poll(answered, { timeout: 120_000, interval: 200 }).toBeGreaterThan(100);
}

interface Return {
  readonly stage: DeliveryStage;
  readonly decidedAt: number;
  readonly before: LoadReport;
  readonly strategy: DeliveryStrategy;
  readonly rollbackLimitMs: number;
}

/** Expects that all traffic has returned, in time and without a failed request. */
async function expectReturn({ stage, decidedAt, before, strategy, rollbackLimitMs }: Return): Promise<void> {
  const after = await expectNoFailure(stage, before, strategy);
  const lastAt = after.answers['v2']?.lastAt ?? 0;
  // The new version has served, or the time would mean nothing.
  expect(lastAt).toBeGreaterThan(0);
  const returnedMs = Math.max(0, lastAt - decidedAt);
  console.log(`${strategy}: all traffic on the old version ${returnedMs} ms after the decision to roll back`);
  // A machine with more work than processors takes longer for everything.
  const slack = Math.max(1, (loadavg()[0] ?? 1) / availableParallelism());
  expect(returnedMs).toBeLessThan(rollbackLimitMs * slack);
  await expectOnly('v1', stage);
}

async function expectNoFailure(stage: DeliveryStage, before: LoadReport, strategy: string): Promise<LoadReport> {
  const after = await loadUntil(stage, before, REQUESTS);
  const failed = after.failed - before.failed;
  console.log(`${strategy}: ${failed} of ${countRequests(after) - countRequests(before)} requests failed`);
  const failures = failuresSince(before, after);
  expect({ failed, failures }).toEqual({ failed: 0, failures: [] });
  return after;
}

async function expectOnly(version: string, stage: DeliveryStage): Promise<void> {
  const from = await stage.load();
  await loadUntil(stage, from, 1000);
  expect(shareOf(version, from, await stage.load())).toBe(100);
}
