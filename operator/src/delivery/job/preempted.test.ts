import { expect, test } from 'vitest';
import { buildAtStage, buildCluster, buildExtra, buildJob, buildSnapshot, summarize } from '../testing/builders.ts';
import { planJob } from './plan.ts';

const rollback = buildJob({
  metadata: { name: 'rollback-shop', uid: 'uid-rollback' },
  spec: { operation: 'Rollback', version: '0.9.0', immediate: true },
});
const queue = { ahead: undefined, before: 0, supersededBy: rollback };
const message = 'Job rollback-shop was asked for since, and brings 0.9.0';

test.for(['Updating', 'Stepping', 'StepPausing', 'CuttingOver', 'UpdatingWorkload', 'DrainingExtra'])(
  'a job that runs is undone for one that is immediate: %s',
  (stage) => {
    const strategy = stage === 'Updating' ? 'Rolling' : 'Canary';
    const status = { step: 0, extraReplicas: 1, weight: 25 };
    const cluster = buildCluster({ extra: buildExtra(1) });
    const decision = planJob(buildAtStage({ strategy, stage, status, cluster, snapshot: { queue } }));
    expect(summarize(decision).status).toMatchObject({
      phase: 'RollingBack',
      failure: { reason: 'Preempted', message },
    });
  },
);

test('one that prepares is given up', () => {
  const decision = planJob(buildAtStage({ strategy: 'Canary', stage: 'Preparing', snapshot: { queue } }));
  expect(summarize(decision).status).toMatchObject({ phase: 'RolledBack', failure: { reason: 'Superseded', message } });
});

test('what is immediate rolls all pods at once and has no checks, whatever the policy says', () => {
  const job = buildJob({ spec: { operation: 'Rollback', immediate: true } });
  const { policy } = buildSnapshot();
  const check = { name: 'errors', initialDelaySeconds: 0, intervalSeconds: 1, count: 1, failureLimit: 0 };
  const strict = { ...policy, strategy: 'Canary' as const, requireHeartbeat: true, analysis: [check] };
  const begun = planJob(buildSnapshot({ job, policy: strict }));
  expect(begun.changes[0]).toMatchObject({ status: { strategy: 'Rolling' } });
  const updating = buildAtStage({ strategy: 'Rolling', stage: 'Updating', spec: { immediate: true } });
  const patch = summarize(planJob(updating)).does.join();
  expect(patch).toContain('"rollingUpdate":{"maxSurge":"100%","maxUnavailable":0}');
});
