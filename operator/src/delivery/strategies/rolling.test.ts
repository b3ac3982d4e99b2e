import { annotations } from '@rollcall/crds/kinds.ts';
import type { DeliveryJobStatus } from '@rollcall/crds/types.gen.ts';
import { expect, test } from 'vitest';
import { planJob } from '../job/plan.ts';
import type { ClusterView, PodGroup, SettledPolicy } from '../job/snapshot.ts';
import {
  buildAtStage,
  buildCluster,
  buildDeployment,
  buildPods,
  buildTemplate,
  CLAIM,
  NEW,
  OLD,
  START,
  type StageWish,
  summarize,
} from '../testing/builders.ts';
import { templateFingerprint } from '../workload/fingerprint.ts';

const version = (value: string) => ({ annotations: { [annotations.version]: value } });

/** The new template is there; `updated` pods of it are. */
function updating(updated: number, reason: string, { ready = 3, progressedSeconds = 100 } = {}): ClusterView {
  const wish = { image: NEW, updated, ready, reason, progressedSeconds };
  const deployment = buildDeployment({ ...wish, metadata: version('1.1.0') });
  return buildCluster({
    deployment,
    replicaSets: [buildPods('old', 3 - updated), buildPods('new', updated, { current: true })],
  });
}

const decide = (wish: Partial<StageWish>) => planJob(buildAtStage({ strategy: 'Rolling', stage: 'Updating', ...wish }));

test('the template, the strategy and the deadline of the policy go into the Deployment with one patch', () => {
  const { changes } = decide({});
  expect(changes.filter(({ action }) => action !== 'status')).toMatchObject([
    {
      action: 'patch',
      object: { metadata: { name: 'shop', resourceVersion: '10' } },
      patch: {
        metadata: { annotations: { [annotations.version]: '1.1.0' } },
        spec: {
          template: { spec: { containers: [{ name: 'shop', image: NEW }] } },
          strategy: { rollingUpdate: { maxSurge: '25%', maxUnavailable: 0 } },
          progressDeadlineSeconds: 600,
        },
      },
    },
  ]);
});

test.for<[SettledPolicy['rolling'], object]>([
  [
    { maxSurge: 0, maxUnavailable: 1, progressDeadlineSeconds: 300, bakeSeconds: 0 },
    { maxSurge: 0, maxUnavailable: 1 },
  ],
  [
    { maxSurge: '0%', maxUnavailable: '40%', progressDeadlineSeconds: 300, bakeSeconds: 0 },
    { maxSurge: '0%', maxUnavailable: '40%' },
  ],
  [
    { maxSurge: 1, maxUnavailable: '40%', progressDeadlineSeconds: 300, bakeSeconds: 0 },
    { maxSurge: '100%', maxUnavailable: '40%' },
  ],
])(
  'at once, and on the way back, no more pods are missing, and none surges that may not: %j',
  ([rolling, expected]) => {
    const wish = { status: recorded, policy: { rolling } };
    const back = decide({ ...wish, cluster: updating(1, 'ReplicaSetUpdated'), spec: { abort: true } });
    const urgent = decide({ policy: { rolling }, spec: { immediate: true } });
    for (const { changes } of [back, urgent]) {
      const patch = changes.find(({ action }) => action === 'patch');
      expect(patch).toHaveProperty('patch.spec.strategy.rollingUpdate', expect.objectContaining(expected));
    }
    const strategy = { type: 'RollingUpdate', rollingUpdate: expected };
    expect(summarize(finish({ strategy }, true, { rolling })).does.join()).toContain('"maxUnavailable":"10%"');
  },
);

test("the template that was made of it is recorded: another one is somebody else's", () => {
  const { changes } = decide({ cluster: updating(1, 'ReplicaSetUpdated') });
  expect(changes).toMatchObject([
    { action: 'status', status: { templateFingerprint: templateFingerprint(buildTemplate(NEW)) } },
  ]);
});

/** As a policy of the cluster has changed what it was given. */
function amended(generation: number, written: string, image = `${NEW}@sha256:1`): ClusterView {
  const metadata = { annotations: { [annotations.version]: '1.1.0', [annotations.delivering]: written } };
  return buildCluster({ deployment: buildDeployment({ image, generation, updated: 1, metadata }) });
}

test('what policies of the cluster make of the template is recorded, as long as nobody has changed it since', () => {
  const own = decide({ cluster: amended(5, `${CLAIM}/5`) });
  const made = templateFingerprint(buildTemplate(`${NEW}@sha256:1`));
  expect(own.changes).toMatchObject([{ action: 'status', status: { templateFingerprint: made } }]);
  for (const cluster of [amended(6, `${CLAIM}/5`), amended(5, CLAIM), amended(5, 'default/other/uid-other/x/5')]) {
    expect(summarize(decide({ cluster })).status.failure?.reason).toBe('ChangedFromOutside');
  }
});

test('the write of the template names the generation that it makes', () => {
  const cluster = buildCluster({ deployment: buildDeployment({ generation: 4 }) });
  const patch = decide({ cluster }).changes.find(({ action }) => action === 'patch');
  expect(patch).toMatchObject({ patch: { metadata: { annotations: { [annotations.delivering]: `${CLAIM}/5` } } } });
});

test.for([
  ['the new one, with more', NEW, {}],
  ['the old one, with more', OLD, { [annotations.version]: null }],
] as const)(
  'a template that somebody has changed keeps the name of the version that it runs: %s',
  ([, image, named]) => {
    const template = buildTemplate(image, { app: 'shop', by: 'user' });
    const deployment = buildDeployment({ metadata: version('1.1.0'), spec: { template } });
    const { changes } = decide({ cluster: buildCluster({ deployment }), status: recorded });
    const patch = changes.find(({ action }) => action === 'patch');
    expect(patch).toHaveProperty('patch', {
      metadata: { annotations: { ...named, [annotations.rollingBack]: 'uid-job' } },
    });
  },
);

test('what was saved being lost, a template keeps the name of its version', () => {
  const cluster = updating(1, 'ReplicaSetUpdated');
  const { changes } = decide({ cluster, status: { ...recorded, oldVersion: '1.0.0' }, snapshot: { saved: undefined } });
  const patch = changes.find(({ action }) => action === 'patch');
  expect(patch).toHaveProperty('patch', { metadata: { annotations: { [annotations.rollingBack]: 'uid-job' } } });
});

const recorded = { templateFingerprint: templateFingerprint(buildTemplate(NEW)) };
const check = { name: 'x', initialDelaySeconds: 0, intervalSeconds: 1, count: 1, failureLimit: 0 };

test.for<[string, Partial<StageWish>, object]>([
  ['progress', { cluster: updating(1, 'ReplicaSetUpdated'), seconds: 900 }, { stage: 'Updating' }],
  [
    'progress that is nearly too old',
    { cluster: updating(1, 'ReplicaSetUpdated', { progressedSeconds: 329 }), seconds: 900 },
    { stage: 'Updating' },
  ],
  [
    'progress too long ago, of which the controller does not tell',
    { cluster: updating(1, 'ReplicaSetUpdated', { progressedSeconds: 330 }), seconds: 900 },
    { stage: 'Reverting', failure: { reason: 'ProgressDeadlineExceeded' } },
  ],
  [
    'no progress, within the deadline',
    { cluster: updating(1, 'ProgressDeadlineExceeded', { ready: 2 }), seconds: 599 },
    { stage: 'Updating' },
  ],
  [
    'no progress',
    { cluster: updating(1, 'ProgressDeadlineExceeded', { ready: 2 }), seconds: 600 },
    { stage: 'Reverting', failure: { reason: 'ProgressDeadlineExceeded' } },
  ],
  ['complete', { cluster: updating(3, 'NewReplicaSetAvailable') }, { stage: 'Finishing', phase: 'Promoting' }],
  [
    'complete, with checks',
    { cluster: updating(3, 'NewReplicaSetAvailable'), policy: { analysis: [check] } },
    { stage: 'Verifying', phase: 'Verifying' },
  ],
  [
    'complete once, and short of pods again',
    { cluster: updating(3, 'NewReplicaSetAvailable', { ready: 2 }), seconds: 600 },
    { stage: 'Reverting' },
  ],
])('follows the rollout: %s', ([, wish, expected]) => {
  const status = summarize(decide({ status: recorded, ...wish })).status;
  expect({ stage: 'Updating', ...status }).toMatchObject(expected);
});

test('a template that the API server refuses is given up at the deadline', () => {
  const late = summarize(decide({ seconds: 600 }));
  expect(late.status).toMatchObject({ stage: 'Reverting', failure: { reason: 'ProgressDeadlineExceeded' } });
});

test('progress beyond the deadline is looked at again when its controller should have told', () => {
  const going = decide({ cluster: updating(1, 'ReplicaSetUpdated'), status: recorded, seconds: 900 });
  expect(going.requeueAfterMs).toBe(230_000);
});

test('what keeps pods from being made is reported', () => {
  const cluster = updating(0, 'ProgressDeadlineExceeded', { ready: 2 });
  const refused = { type: 'ReplicaFailure', status: 'True', message: 'exceeded quota' };
  const deployment = { ...cluster.deployment, status: { ...cluster.deployment.status, conditions: [refused] } };
  const late = decide({ cluster: { ...cluster, deployment }, status: recorded, seconds: 600 });
  expect(summarize(late).status.failure?.message).toContain('exceeded quota');
});

test('a version that runs already only gets its name', () => {
  const wish: Partial<StageWish> = { saved: { target: buildTemplate(OLD) } };
  const record = JSON.stringify({ version: '1.1.0', runs: OLD, label: null });
  const notes = { [annotations.version]: '1.1.0', [annotations.versionOf]: record };
  expect(summarize(decide(wish)).does).toEqual([
    `patch Deployment shop {"metadata":{"annotations":${JSON.stringify(notes)}}}`,
  ]);
  const named = buildCluster({ deployment: buildDeployment({ metadata: { annotations: notes } }) });
  expect(summarize(decide({ ...wish, cluster: named })).status.stage).toBe('Finishing');
});

const UNCLAIMED = `"metadata":{"annotations":{"${annotations.delivering}":null}}`;
const finish = (spec: object, isClaimed = true, policy: Partial<SettledPolicy> = {}) => {
  const deployment = buildDeployment({
    image: NEW,
    metadata: version('1.1.0'),
    spec: { template: buildTemplate(NEW), ...spec },
  });
  return decide({ stage: 'Finishing', status: recorded, cluster: buildCluster({ deployment }), isClaimed, policy });
};

test('what the policy wanted is handed back at the end, and what somebody else has set since is not', () => {
  const policyStrategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: 0 } };
  expect(summarize(finish({ strategy: policyStrategy, progressDeadlineSeconds: 600 })).does).toEqual([
    `patch Deployment shop {${UNCLAIMED},"spec":{"strategy":{"rollingUpdate":{"maxSurge":"50%","maxUnavailable":"10%"}},"progressDeadlineSeconds":300}}`,
  ]);
  const own = {
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 5, maxUnavailable: 0 } },
    progressDeadlineSeconds: 77,
  };
  expect(summarize(finish(own)).does).toEqual([`patch Deployment shop {${UNCLAIMED}}`]);
  expect(summarize(finish(own, false))).toMatchObject({ does: [], status: { phase: 'Succeeded' } });
});

test('all pods of the old version may come up at once on the way back', () => {
  const { changes } = decide({ cluster: updating(1, 'ReplicaSetUpdated'), status: recorded, spec: { abort: true } });
  const patch = changes.find(({ action }) => action === 'patch');
  expect(changes[0]).toMatchObject({ action: 'status', status: { stage: 'Reverting' } });
  expect(patch).toMatchObject({
    patch: {
      metadata: { annotations: { [annotations.version]: null, [annotations.rollingBack]: 'uid-job' } },
      spec: {
        template: { spec: { containers: [{ image: OLD }] } },
        strategy: { rollingUpdate: { maxSurge: '100%', maxUnavailable: 0 } },
      },
    },
  });
});

const back = { [annotations.rollingBack]: 'uid-job' };
const failure = { reason: 'Aborted', message: 'The job was aborted' };
test.for<[string, Partial<StageWish>, object]>([
  [
    'the old pods come up',
    { cluster: buildCluster({ deployment: buildDeployment({ updated: 2, metadata: { annotations: back } }) }) },
    { stage: 'Restoring' },
  ],
  [
    'all are there',
    { cluster: buildCluster({ deployment: buildDeployment({ metadata: { annotations: back } }) }) },
    { stage: 'Finishing', phase: 'RollingBack' },
  ],
  [
    'they do not come up',
    {
      cluster: buildCluster({ deployment: buildDeployment({ updated: 2, metadata: { annotations: back } }) }),
      seconds: 600,
    },
    { stage: 'Finishing', failure: { reason: 'RollbackIncomplete' } },
  ],
  ...[599, 600].map((progressedSeconds): [string, Partial<StageWish>, object] => [
    `they come up one by one, the last one ${progressedSeconds} s ago`,
    {
      cluster: buildCluster({
        deployment: buildDeployment({
          updated: 2,
          reason: 'ReplicaSetUpdated',
          progressedSeconds,
          metadata: { annotations: back },
        }),
      }),
      seconds: 5000,
    },
    progressedSeconds < 600 ? { stage: 'Restoring' } : { failure: { reason: 'RollbackIncomplete' } },
  ]),
  [
    'somebody has put another template there',
    {
      cluster: buildCluster({
        deployment: buildDeployment({ image: 'x:1', updated: 0, metadata: { annotations: back } }),
      }),
    },
    { stage: 'Finishing', failure: { reason: 'ChangedFromOutside' } },
  ],
])('Restoring: %s', ([, wish, expected]) => {
  const status = summarize(decide({ stage: 'Restoring', status: { ...recorded, failure }, ...wish })).status;
  expect({ stage: 'Restoring', ...status }).toMatchObject(expected);
});

const shortOf = (found: number | undefined): Partial<StageWish> =>
  found === undefined
    ? {}
    : {
        saved: {
          deployment: {
            template: buildTemplate(OLD),
            strategy: {},
            progressDeadlineSeconds: 300,
            version: null,
            versionOf: null,
            short: { ready: found, missing: 3 - found },
          },
        },
      };
const restored = (ready: number, others: readonly PodGroup[] = []) =>
  buildCluster({
    deployment: buildDeployment({ ready, metadata: { annotations: back } }),
    replicaSets: [buildPods('old', 3, { current: true, ready }), ...others],
  });
test.for<[string, number | undefined, ClusterView, string]>([
  ['as many as there were, for one that was short', 2, restored(2), 'Finishing'],
  ['none, for one that had none', 0, restored(0), 'Finishing'],
  ['fewer than there were', 2, restored(1), 'Restoring'],
  ['as many as there were, but new ones too', 2, restored(2, [buildPods('new', 1)]), 'Restoring'],
  ['fewer than are asked for, for one that had enough', undefined, restored(2), 'Restoring'],
])('what ready pods are back when the old version is: %s', ([, found, cluster, expected]) => {
  const wish = { stage: 'Restoring', status: { ...recorded, failure }, cluster, ...shortOf(found) };
  expect(summarize(decide(wish)).status.stage ?? 'Restoring').toBe(expected);
});

test.for([
  ['Aborted', 'RolledBack'],
  ['ChecksFailed', 'RolledBack'],
  ['ChangedFromOutside', 'Failed'],
  ['RollbackIncomplete', 'Failed'],
] as const)('undone for %s, a job ends as %s', ([reason, phase]) => {
  const decision = decide({ stage: 'Finishing', isClaimed: false, status: { failure: { reason, message: 'why' } } });
  expect(summarize(decision).status).toMatchObject({ phase, failure: { reason } });
});

test.for<[number | undefined, number]>([
  [undefined, 0],
  [2, 1],
  [0, 0],
])(
  'on the way back new pods do not stand in for old ones that were not ready before, unless none was: %s',
  ([found, maxUnavailable]) => {
    const cluster = updating(1, 'ReplicaSetUpdated');
    const { changes } = decide({ cluster, status: recorded, spec: { abort: true }, ...shortOf(found) });
    const patch = changes.find(({ action }) => action === 'patch');
    expect(patch).toMatchObject({
      patch: { spec: { strategy: { rollingUpdate: { maxSurge: '100%', maxUnavailable } } } },
    });
  },
);

const oneByOne = { maxSurge: 0, maxUnavailable: 1, progressDeadlineSeconds: 600, bakeSeconds: 0 };
test.for<[string, number | undefined, number, number, number | undefined]>([
  ['not yet stuck', 1, 1, 299, undefined],
  ['stuck: the two that were not ready before count as missing', 1, 1, 300, 3],
  ['stuck, but more were ready before: none of these may go', 2, 1, 300, 2],
  ['stuck, with all ready before: those that are ready may not go', undefined, 2, 300, 1],
])('without a surge, the way back is %s', ([, found, ready, seconds, maxUnavailable]) => {
  const wish = { stage: 'Restoring', status: { ...recorded, failure }, seconds, policy: { rolling: oneByOne } };
  const strategy = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } };
  const deployment = buildDeployment({ updated: 2, metadata: { annotations: back } });
  const cluster = buildCluster({
    deployment: { ...deployment, spec: { ...deployment.spec, strategy } },
    replicaSets: [buildPods('old', 2, { current: true, ready }), buildPods('new', 1, { ready: 0 })],
  });
  const { changes, requeueAfterMs } = decide({ ...wish, cluster, ...shortOf(found) });
  const patched = changes.flatMap((change) => (change.action === 'patch' ? [change.patch] : []));
  const isRaised = maxUnavailable !== undefined && maxUnavailable > 1;
  expect(patched).toMatchObject(isRaised ? [{ spec: { strategy: { rollingUpdate: { maxUnavailable } } } }] : []);
  expect(requeueAfterMs).toBe(seconds < 300 ? 1000 : 300_000);
});

/** The new version was rolled out; its pods are known to be ready, or missed, for so long. */
function baking(
  ready: number,
  known: { status: 'True' | 'False' | 'Unknown'; seconds: number },
  restarts = 0,
): Partial<StageWish> {
  const deployment = buildDeployment({ image: NEW, ready, metadata: version('1.1.0') });
  const condition = {
    type: 'PodsReady',
    status: known.status,
    reason: 'x',
    message: '',
    lastTransitionTime: new Date(START - known.seconds * 1000).toISOString(),
  };
  return {
    stage: 'Verifying',
    seconds: 20,
    policy: { rolling: { maxSurge: 1, maxUnavailable: 0, progressDeadlineSeconds: 600, bakeSeconds: 5 } },
    cluster: buildCluster({ deployment, replicaSets: [buildPods('new', 3, { current: true, ready, restarts })] }),
    status: { ...recorded, restarts: 1, conditions: [condition] },
  };
}

test('a version that was rolled out has to stay ready for a while', () => {
  const done = decide({ ...baking(3, { status: 'True', seconds: 0 }), stage: 'Updating', status: recorded });
  expect(summarize(done).status).toMatchObject({ stage: 'Verifying', phase: 'Verifying' });
  expect(done.requeueAfterMs).toBe(0);
  const short = decide(baking(3, { status: 'True', seconds: 4 }));
  expect([summarize(short).status.stage, short.requeueAfterMs]).toEqual(['Verifying', 1000]);
  expect(summarize(decide(baking(3, { status: 'True', seconds: 5 }))).status.stage).toBe('Finishing');
});

test.for<[string, Partial<StageWish>, string | undefined]>([
  ['a pod that is missed', baking(2, { status: 'True', seconds: 90 }), undefined],
  ['a pod that was restarted', baking(3, { status: 'True', seconds: 90 }, 2), undefined],
  ['all pods, for less than 30 s', baking(0, { status: 'False', seconds: 29 }), undefined],
  ['all pods, for longer', baking(0, { status: 'False', seconds: 30 }), 'PodsNotReady'],
  ['all pods, before they were seen ready', baking(0, { status: 'Unknown', seconds: 30 }), 'PodsNotReady'],
  ['a pod, for less than the deadline', baking(2, { status: 'False', seconds: 599 }), undefined],
  ['a pod, for longer', baking(2, { status: 'False', seconds: 600 }), 'PodsNotReady'],
  ['again and again', { ...baking(2, { status: 'False', seconds: 1 }), seconds: 605 }, 'PodsNotReady'],
])('as long as it does not, it waits, and is rolled back in the end: %s', ([, wish, reason]) => {
  const { changes } = decide(wish);
  const { status } = summarize({ changes });
  expect([status.stage, status.failure?.reason]).toEqual([reason === undefined ? 'Verifying' : 'Reverting', reason]);
  if (reason !== undefined) return;
  // From when they are ready again the time counts anew.
  const [write] = changes;
  const conditions = (write?.action === 'status' ? write.status : {}) as DeliveryJobStatus;
  expect(conditions.conditions?.find(({ type }) => type === 'PodsReady')?.status).toBe('False');
});

test('a job that is held stays held while a pod is missed for a moment, however late it is, and its promote is kept', () => {
  const check = { name: 'x', initialDelaySeconds: 0, intervalSeconds: 1, count: 1, failureLimit: 0 };
  const wish = baking(2, { status: 'False', seconds: 1 });
  const held: Partial<StageWish> = {
    ...wish,
    seconds: 40_000,
    policy: { ...wish.policy, analysis: [check], onFailure: 'Hold' },
    snapshot: { measurements: [{ check: 'x', passed: false, at: new Date(START), message: 'too slow' }] },
    status: { ...wish.status, phase: 'Paused', promotedGeneration: 1 },
  };
  const { status } = summarize(decide(held));
  expect([status.phase, status.stage, status.failure]).toEqual(['Paused', 'Verifying', undefined]);
  const promoted = summarize(decide({ ...held, spec: { promote: true }, metadata: { generation: 2 } })).status;
  expect([promoted.phase, promoted.stage]).toEqual(['Paused', 'Verifying']);
  expect(promoted.promotedGeneration).not.toBe(2);
});

test('without a time to stay ready, or pods, a rollout is all', () => {
  const rolling = { maxSurge: 1, maxUnavailable: 0, progressDeadlineSeconds: 600, bakeSeconds: 5 };
  const ended = { ...baking(3, { status: 'True', seconds: 0 }), stage: 'Updating', status: recorded };
  expect(summarize(decide({ ...ended, policy: { rolling: { ...rolling, bakeSeconds: 0 } } })).status.stage).toBe(
    'Finishing',
  );
  const none = buildDeployment({ image: NEW, replicas: 0, metadata: version('1.1.0') });
  const cluster = buildCluster({ deployment: none, replicaSets: [buildPods('new', 0, { current: true })] });
  expect(summarize(decide({ ...ended, cluster })).status.stage).toBe('Finishing');
});

/** What the operator owns once it has handed the strategy back. */
const owned = (...fields: string[]): Partial<StageWish> => {
  const paths = fields.map((field) => [`f:${field}`, {}] as const);
  const managedFields = [{ manager: 'rollcall-operator', fieldsV1: { 'f:spec': Object.fromEntries(paths) } }];
  const metadata = { ...version('1.1.0'), managedFields };
  const deployment = buildDeployment({ image: NEW, metadata });
  return { stage: 'Finishing', status: recorded, cluster: buildCluster({ deployment }), isClaimed: false };
};

test.for<[string, Partial<StageWish>, readonly string[] | undefined]>([
  ['a strategy', owned('strategy', 'template'), ['metadata.annotations', 'spec.template']],
  ['the template that it has delivered', owned('template'), undefined],
  ['a template that it has reverted', { ...owned('template'), status: { failure } }, ['metadata.annotations']],
])('a job that ends gives up what the operator owns but for what it has delivered: %s', ([, wish, kept]) => {
  const { changes } = decide(wish);
  const given = changes.filter((change) => change.action === 'disown').map((change) => change.kept);
  expect(given).toEqual(kept === undefined ? [] : [kept]);
  const late = summarize(decide({ ...wish, seconds: 600 }));
  expect(late.status.phase).toBe(wish.status?.failure === undefined ? 'Succeeded' : 'RolledBack');
});
