import { expect, test } from 'vitest';
import { planJob } from '../job/plan.ts';
import { buildAtStage, buildCluster, buildDeployment, buildPods, NEW, OLD, summarize } from '../testing/builders.ts';

const strategy = { type: 'Recreate' } as const;
const saved = {
  deployment: {
    template: buildDeployment().spec.template,
    strategy,
    progressDeadlineSeconds: 300,
    version: null,
    versionOf: null,
  },
};

test('a Recreate Deployment gets the new version by its own strategy, also at once', () => {
  const cluster = buildCluster({ deployment: buildDeployment({ image: OLD, spec: { strategy } }) });
  for (const immediate of [false, true]) {
    const wish = { strategy: 'Rolling', stage: 'Updating', cluster, saved, spec: { immediate } } as const;
    const [patch = ''] = summarize(planJob(buildAtStage(wish))).does;
    expect(patch).toContain(NEW);
    expect(patch).not.toContain('rollingUpdate');
  }
});

test('and the old one back', () => {
  const deployment = buildDeployment({ image: NEW, ready: 0, generation: 2, spec: { strategy } });
  const replicaSets = [buildPods('new', 1, { ready: 0, current: true })];
  const failure = { reason: 'CrashLoop', message: 'it ended' };
  const cluster = buildCluster({ deployment, replicaSets });
  const status = { failure, templateFingerprint: cluster.fingerprint };
  const wish = { strategy: 'Rolling', stage: 'Reverting', cluster, saved, status } as const;
  const patch = summarize(planJob(buildAtStage(wish))).does.join();
  expect(patch).toContain(OLD);
  expect(patch).not.toContain('rollingUpdate');
});
