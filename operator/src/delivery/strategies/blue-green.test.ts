import { annotations } from '@rollcall/crds/kinds.ts';
import type { DeliveryJobStatus } from '@rollcall/crds/types.gen.ts';
import type { Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import { expect, test } from 'vitest';
import type { Decision } from '../../runtime/decision.ts';
import { planJob } from '../job/plan.ts';
import type { ClusterView, Measurement, SettledPolicy } from '../job/snapshot.ts';
import {
  buildAtStage,
  buildCluster,
  buildDeployment,
  buildExtra,
  buildPods,
  buildService,
  buildTemplate,
  NEW,
  OLD,
  pinnedTo,
  START,
  type StageWish,
  summarize,
} from '../testing/builders.ts';
import { templateFingerprint } from '../workload/fingerprint.ts';

const pin = (hash: string | null) =>
  `patch Service shop {"spec":{"selector":{"pod-template-hash":${JSON.stringify(hash)}}}}`;
const scale = (replicas: number) => `patch Deployment shop-green {"spec":{"replicas":${replicas}}}`;
const MARK = `"metadata":{"annotations":{"${annotations.rollingBack}":"uid-job"}}`;

const GREEN = { extra: buildExtra(3) };
/** Where the user's Deployment runs the new version. */
const updatedDeployment = buildDeployment({
  image: NEW,
  metadata: { annotations: { [annotations.version]: '1.1.0' } },
});
const UPDATED = {
  ...GREEN,
  deployment: updatedDeployment,
  replicaSets: [buildPods('old', 0), buildPods('next', 3, { current: true })],
};
const RECORDED = { templateFingerprint: templateFingerprint(buildTemplate(NEW)), weight: 100, extraReplicas: 3 };
const STABLE_SHORT = [buildPods('old', 3, { current: true, ready: 2 })];
const STABLE_MIXED = [...STABLE_SHORT, buildPods('older', 1)];

type Row = [string, string, Partial<ClusterView>, Partial<StageWish>, { stage?: string; does: unknown[] }];

const rows: Row[] = [
  ['Pinning', 'pins Services to the pods that run', {}, {}, { does: [pin('old')] }],
  ['Pinning', 'however few of them are ready', { replicaSets: STABLE_SHORT }, {}, { does: [pin('old')] }],
  ['Pinning', 'where others are too, not before enough are ready', { replicaSets: STABLE_MIXED }, {}, { does: [] }],
  [
    'Pinning',
    'fails at the deadline',
    { replicaSets: STABLE_MIXED },
    { seconds: 600 },
    {
      stage: 'Reverting',
      does: [`patch Service shop {${MARK}}`, `patch Deployment shop {${MARK}}`],
    },
  ],
  [
    'Pinning',
    'then brings up green',
    { services: [pinnedTo('old')] },
    {},
    { stage: 'BringingUp', does: ['create Deployment shop-green'] },
  ],
  [
    'Pinning',
    'without Services too',
    { services: [] },
    { saved: { services: [] } },
    { stage: 'BringingUp', does: ['create Deployment shop-green'] },
  ],
  [
    'BringingUp',
    'without pods at first',
    { services: [pinnedTo('old')] },
    {},
    { does: ['create Deployment shop-green'] },
  ],
  ['BringingUp', 'then at full size', { services: [pinnedTo('old')], extra: buildExtra(0) }, {}, { does: [scale(3)] }],
  [
    'BringingUp',
    'and waits',
    { services: [pinnedTo('old')], extra: buildExtra(3, { ready: 2 }) },
    { status: { extraReplicas: 3 } },
    { does: [] },
  ],
  [
    'BringingUp',
    'then cuts over',
    { services: [pinnedTo('old')], ...GREEN },
    { status: { extraReplicas: 3 } },
    { stage: 'CuttingOver', does: [pin('new')] },
  ],
  [
    'BringingUp',
    'after a smoke test where there is one',
    { services: [pinnedTo('old')], ...GREEN },
    {
      status: { extraReplicas: 3 },
      policy: {
        blueGreen: {
          bakeSeconds: 1,
          autoPromote: true,
          smokeTest: { path: '/', port: 1, scheme: 'HTTP', timeoutSeconds: 1 },
        },
      },
    },
    { stage: 'Testing', does: [] },
  ],
  [
    'BringingUp',
    'or waits for a promote',
    { services: [pinnedTo('old')], ...GREEN },
    { status: { extraReplicas: 3 }, policy: { blueGreen: { bakeSeconds: 1, autoPromote: false } } },
    { stage: 'Gate', does: [] },
  ],
  [
    'BringingUp',
    'fails at the deadline; pods without traffic go at once',
    { services: [pinnedTo('old')], extra: buildExtra(3, { ready: 2 }) },
    { status: { extraReplicas: 3 }, seconds: 600 },
    { stage: 'Reverting', does: [scale(0), `patch Service shop {${MARK}}`, `patch Deployment shop {${MARK}}`] },
  ],
  [
    'BringingUp',
    'notices that a pin is gone',
    { services: [buildService()], ...GREEN },
    { status: { extraReplicas: 3 } },
    {
      stage: 'Reverting',
      does: [
        scale(0),
        `patch Service shop {${MARK},"spec":{"selector":{"pod-template-hash":"old"}}}`,
        `patch Deployment shop {${MARK}}`,
      ],
    },
  ],
  [
    'BringingUp',
    'notices that a selector is another',
    { services: [buildService('shop', { app: 'x' })], ...GREEN },
    { status: { extraReplicas: 3 } },
    { stage: 'Reverting', does: [scale(0), `patch Service shop {${MARK}}`, `patch Deployment shop {${MARK}}`] },
  ],
  [
    'BringingUp',
    'notices that green is gone',
    { services: [pinnedTo('old')] },
    { status: { extraReplicas: 3 } },
    { stage: 'Reverting', does: [`patch Service shop {${MARK}}`, `patch Deployment shop {${MARK}}`] },
  ],
  [
    'BringingUp',
    'follows an autoscaler up',
    { services: [pinnedTo('old')], ...GREEN, deployment: buildDeployment({ replicas: 5 }) },
    { status: { extraReplicas: 3 } },
    { does: [scale(5)] },
  ],
  [
    'BringingUp',
    'and not down',
    { services: [pinnedTo('old')], ...GREEN, deployment: buildDeployment({ replicas: 2 }) },
    { status: { extraReplicas: 3 } },
    { stage: 'CuttingOver', does: [pin('new')] },
  ],
  ['Gate', 'waits', { services: [pinnedTo('old')], ...GREEN }, { status: { extraReplicas: 3 } }, { does: [] }],
  [
    'Gate',
    'until a promote',
    { services: [pinnedTo('old')], ...GREEN },
    { status: { extraReplicas: 3 }, spec: { promote: true } },
    { stage: 'CuttingOver', does: [pin('new')] },
  ],
  [
    'CuttingOver',
    'not before enough green pods are ready',
    { services: [pinnedTo('old')], extra: buildExtra(3, { ready: 2 }) },
    { status: { extraReplicas: 3 } },
    { does: [] },
  ],
  [
    'CuttingOver',
    'then bakes',
    { services: [pinnedTo('new')], ...GREEN },
    { status: { extraReplicas: 3 } },
    { stage: 'Baking', does: [] },
  ],
  [
    'Baking',
    'for as long as the policy says',
    { services: [pinnedTo('new')], ...GREEN },
    { status: { extraReplicas: 3 }, seconds: 59 },
    { does: [] },
  ],
  [
    'Baking',
    'which has drained the old pods',
    { services: [pinnedTo('new')], ...GREEN },
    { status: { extraReplicas: 3 }, seconds: 60 },
    { stage: 'UpdatingWorkload', does: [expect.stringContaining('patch Deployment shop ')] },
  ],
  [
    'Baking',
    'or has not',
    { services: [pinnedTo('new')], ...GREEN },
    { status: { extraReplicas: 3 }, seconds: 10, policy: { blueGreen: { bakeSeconds: 10, autoPromote: true } } },
    { stage: 'Draining', does: [] },
  ],
  [
    'Baking',
    'goes back at once when no green pod is ready',
    { services: [pinnedTo('new')], extra: buildExtra(3, { ready: 0 }) },
    { status: { extraReplicas: 3, weight: 100 } },
    {
      stage: 'Reverting',
      does: [
        `patch Service shop {${MARK},"spec":{"selector":{"pod-template-hash":"old"}}}`,
        `patch Deployment shop {${MARK}}`,
      ],
    },
  ],
  [
    'Baking',
    'waits a little for some of them',
    { services: [pinnedTo('new')], extra: buildExtra(3, { ready: 2 }) },
    { status: { extraReplicas: 3 }, seconds: 60 },
    { does: [] },
  ],
  [
    'Draining',
    'keeps the old pods',
    { services: [pinnedTo('new')], ...GREEN },
    { status: { extraReplicas: 3 }, seconds: 29 },
    { does: [] },
  ],
  [
    'Draining',
    'then updates the Deployment',
    { services: [pinnedTo('new')], ...GREEN },
    { status: { extraReplicas: 3 }, seconds: 30 },
    { stage: 'UpdatingWorkload', does: [expect.stringContaining('patch Deployment shop ')] },
  ],
  [
    'UpdatingWorkload',
    'then hands the traffic back',
    { services: [pinnedTo('new')], ...UPDATED },
    { status: RECORDED },
    { stage: 'HandingBack', does: [pin('next')] },
  ],
  [
    'HandingBack',
    'not before enough pods are ready',
    { services: [pinnedTo('new')], ...UPDATED, replicaSets: [buildPods('next', 3, { current: true, ready: 2 })] },
    { status: RECORDED },
    { does: [] },
  ],
  [
    'HandingBack',
    'then drains green',
    { services: [pinnedTo('next')], ...UPDATED },
    { status: RECORDED },
    { stage: 'DrainingExtra', does: [] },
  ],
  [
    'DrainingExtra',
    'keeps green',
    { services: [pinnedTo('next')], ...UPDATED },
    { status: RECORDED, seconds: 29 },
    { does: [] },
  ],
  [
    'DrainingExtra',
    'then removes it',
    { services: [pinnedTo('next')], ...UPDATED },
    { status: RECORDED, seconds: 30 },
    { stage: 'RemovingExtra', does: [scale(0)] },
  ],
  [
    'RemovingExtra',
    'when its pods are gone',
    { services: [pinnedTo('next')], ...UPDATED, extra: buildExtra(0) },
    { status: RECORDED },
    { does: ['delete Deployment shop-green'] },
  ],
  [
    'RemovingExtra',
    'waits for its pods to go',
    { services: [pinnedTo('next')], ...UPDATED, extra: buildExtra(2, { replicas: 0 }) },
    { status: RECORDED },
    { does: [] },
  ],
  [
    'RemovingExtra',
    'then unpins',
    { services: [pinnedTo('next')], ...UPDATED, extra: undefined },
    { status: RECORDED },
    { stage: 'Finishing', does: [pin(null)] },
  ],
  [
    'Finishing',
    'then it has succeeded',
    { ...UPDATED, extra: undefined },
    { status: RECORDED, isClaimed: false },
    { stage: 'Succeeded', does: [] },
  ],
];

test.for(rows)('%s: %s', ([stage, , cluster, wish, expected]) => {
  const decision = planJob(buildAtStage({ strategy: 'BlueGreen', stage, cluster: buildCluster(cluster), ...wish }));
  const { status, does } = summarize(decision);
  expect(status.stage ?? stage).toBe(expected.stage ?? stage);
  expect(does).toEqual(expected.does);
});

const DOWN = {
  status: { failure: { reason: 'Aborted', message: 'x' }, extraReplicas: 3, weight: 100 },
} satisfies Partial<StageWish>;
const back = { metadata: { annotations: { [annotations.rollingBack]: 'uid-job' } } };
const marked = (hash?: string) => {
  const service = hash === undefined ? buildService() : pinnedTo(hash);
  return { ...service, metadata: { ...service.metadata, ...back.metadata } };
};
const OWN = { deployment: buildDeployment(back) };
/** The old template is there again, its pods come up. */
const half = { replicaSets: [buildPods('old', 2, { current: true }), buildPods('next', 2)] };

const backRows: Row[] = [
  [
    'Reverting',
    'to the old pods with one patch',
    { services: [pinnedTo('new')], ...GREEN, ...OWN },
    DOWN,
    { does: [`patch Service shop {${MARK},"spec":{"selector":{"pod-template-hash":"old"}}}`] },
  ],
  [
    'Reverting',
    'green serves until the old pods are enough',
    { services: [pinnedTo('new')], ...GREEN, ...OWN, ...half },
    DOWN,
    { does: [`patch Service shop {${MARK}}`] },
  ],
  [
    'Reverting',
    'else all that is ready does',
    { services: [pinnedTo('next')], ...GREEN, ...OWN, ...half },
    DOWN,
    { does: [`patch Service shop {${MARK},"spec":{"selector":{"pod-template-hash":null}}}`] },
  ],
  [
    'Reverting',
    'waits for old pods that are not ready, through no doing of the job',
    { services: [marked('new')], ...GREEN, ...OWN, replicaSets: STABLE_SHORT },
    DOWN,
    { does: [] },
  ],
  [
    'Reverting',
    'but not for long',
    { services: [marked('new')], ...GREEN, ...OWN, replicaSets: STABLE_SHORT },
    { ...DOWN, seconds: 5 },
    {
      does: [
        `patch Service shop {"metadata":{"annotations":{"${annotations.rollingBack}":"uid-job"}},"spec":{"selector":{"pod-template-hash":"old"}}}`,
      ],
    },
  ],
  [
    'Reverting',
    'then restores',
    { services: [marked('old')], ...GREEN, ...OWN },
    DOWN,
    { stage: 'Restoring', does: [] },
  ],
  [
    'Restoring',
    'then drains green',
    { services: [marked('old')], ...GREEN, ...OWN },
    DOWN,
    { stage: 'DrainingExtra', does: [] },
  ],
  [
    'Restoring',
    'or removes green that never had traffic',
    { services: [marked('old')], extra: buildExtra(0), ...OWN },
    { status: { ...DOWN.status, extraReplicas: 0 } },
    { stage: 'RemovingExtra', does: ['delete Deployment shop-green'] },
  ],
  [
    'RemovingExtra',
    'keeps green that would be missed',
    { services: [marked()], ...GREEN, ...OWN, replicaSets: STABLE_SHORT },
    DOWN,
    { does: [] },
  ],
  [
    'RemovingExtra',
    'and ends with it at the deadline',
    { services: [marked()], ...GREEN, ...OWN, replicaSets: STABLE_SHORT },
    { ...DOWN, seconds: 600 },
    {
      stage: 'Finishing',
      does: [
        `patch Service shop {"metadata":{"annotations":{"${annotations.rollingBack}":null}}}`,
        `patch Deployment shop {"metadata":{"annotations":{"${annotations.rollingBack}":null}}}`,
      ],
    },
  ],
  [
    'Finishing',
    'unmarks and unpins',
    { services: [marked('old')], ...OWN },
    DOWN,
    {
      does: [
        `patch Service shop {"metadata":{"annotations":{"${annotations.rollingBack}":null}},"spec":{"selector":{"pod-template-hash":null}}}`,
        `patch Deployment shop {"metadata":{"annotations":{"${annotations.rollingBack}":null}}}`,
      ],
    },
  ],
  [
    'Finishing',
    'then lets go of the Deployment',
    {},
    DOWN,
    { does: [`patch Deployment shop {"metadata":{"annotations":{"${annotations.delivering}":null}}}`] },
  ],
  ['Finishing', 'then it is rolled back', {}, { ...DOWN, isClaimed: false }, { stage: 'RolledBack', does: [] }],
];

/** The API server has refused to unpin the Service, and the Deployment too, to the deadline. */
const late = { ...DOWN, seconds: 600 };
const REFUSED = { services: [marked('new')], ...GREEN };
backRows.push(
  [
    'Reverting',
    'goes on at the deadline, whatever is refused',
    { ...REFUSED },
    late,
    {
      stage: 'Restoring',
      does: [
        `patch Service shop {${MARK},"spec":{"selector":{"pod-template-hash":"old"}}}`,
        `patch Deployment shop {${MARK}}`,
      ],
    },
  ],
  ['Restoring', 'goes on at the deadline, whatever is refused', REFUSED, late, { stage: 'DrainingExtra', does: [] }],
  ['RemovingExtra', 'keeps green where a Service still leads to it', REFUSED, DOWN, { does: [] }],
  [
    'RemovingExtra',
    'leaves what cannot be removed for later',
    { ...GREEN, services: [marked('old')] },
    late,
    { stage: 'Finishing', does: [expect.stringContaining('patch Service shop')] },
  ],
  ['Finishing', 'ends at the deadline, whatever is refused', REFUSED, late, { stage: 'Failed', does: [] }],
);

test.for(backRows)('on the way back, %s: %s', ([stage, , cluster, wish, expected]) => {
  const decision = planJob(buildAtStage({ strategy: 'BlueGreen', stage, cluster: buildCluster(cluster), ...wish }));
  const { status, does } = summarize(decision);
  expect(status.stage ?? stage).toBe(expected.stage ?? stage);
  expect(does).toEqual(expected.does);
});

const changesAt = (hash: string) =>
  planJob(
    buildAtStage({
      strategy: 'BlueGreen',
      stage: 'HandingBack',
      cluster: buildCluster({ ...UPDATED, services: [pinnedTo(hash), buildService('other')] }),
      status: RECORDED,
      spec: { abort: true },
      saved: TWO,
    }),
  )
    .changes.filter((change) => change.action === 'patch')
    .map(({ object, independent }) => [object.metadata.name, object.kind, independent === true]);

test('on the way back whatever is refused, the rest is done, but no pods go that a Service is kept on', () => {
  expect(changesAt('new')).toEqual([
    ['shop', 'Service', true],
    ['other', 'Service', true],
    ['shop', 'Deployment', false],
  ]);
  expect(changesAt('next')).toEqual([
    ['other', 'Service', true],
    ['shop', 'Service', false],
    ['shop', 'Deployment', false],
  ]);
});

test('a version that runs is not undone because something cannot be handed back', () => {
  const cluster = buildCluster({ ...UPDATED, extra: undefined, services: [pinnedTo('next')] });
  const wish: StageWish = { strategy: 'BlueGreen', stage: 'Finishing', cluster, status: RECORDED };
  expect(summarize(planJob(buildAtStage({ ...wish, seconds: 599 }))).does).toEqual([pin(null)]);
  const ended = summarize(planJob(buildAtStage({ ...wish, seconds: 600 })));
  expect(ended).toMatchObject({ status: { phase: 'Failed', failure: { reason: 'NotHandedBack' } }, does: [] });
  expect(
    summarize(planJob(buildAtStage({ ...wish, stage: 'RemovingExtra', seconds: 600 }))).status.failure,
  ).toBeUndefined();
});

test.for<[string, 'NotHandedBack' | 'RollbackIncomplete', Service, boolean]>([
  ['not by a job that has delivered', 'NotHandedBack', buildService(), false],
  ['nor by that while a Service is pinned', 'NotHandedBack', pinnedTo('next'), false],
  ['not while a Service is pinned to the pods that would go', 'RollbackIncomplete', pinnedTo('next'), false],
  ['but then by a rollback that did not come to it', 'RollbackIncomplete', buildService(), true],
])('when a job has ended, the old version is put back: %s', ([, reason, service, isRestored]) => {
  const cluster = buildCluster({ ...UPDATED, extra: undefined, services: [service] });
  const status = { ...RECORDED, phase: 'Failed', failure: { reason, message: 'm' } } as const;
  const { does } = summarize(planJob(buildAtStage({ strategy: 'BlueGreen', stage: 'Failed', cluster, status })));
  expect(does.some((change) => change.includes('"template"'))).toBe(isRestored);
  expect(does.includes(pin(null))).toBe(service.spec?.selector?.['pod-template-hash'] !== undefined);
  // Nobody else may claim the Deployment before.
  const isReleased = does.some((change) => change.includes('"rollcall.dev/delivering":null'));
  expect(isReleased).toBe(reason === 'NotHandedBack' && does[0] !== pin(null));
});

/** So long pods that were ready have been missed. */
const missedFor = (seconds: number, known: Partial<DeliveryJobStatus> = {}): Partial<StageWish> => ({
  seconds: 40,
  status: {
    ...RECORDED,
    ...known,
    conditions: [
      {
        type: 'PodsReady',
        status: 'False',
        reason: 'Unready',
        message: '',
        lastTransitionTime: new Date(START - seconds * 1000).toISOString(),
      },
    ],
  },
});
const BEFORE = { templateFingerprint: templateFingerprint(buildTemplate(OLD)) };
const green = (ready: number) => ({ extra: buildExtra(3, { ready }) });
/** The user's Deployment on its way to the new version. */
const updating = (old: number, next: number) => ({
  deployment: buildDeployment({ ...UPDATED, image: NEW, updated: 1, ready: old, reason: 'ReplicaSetUpdated' }),
  replicaSets: [buildPods('old', old), buildPods('next', next, { current: true })],
});
const GREEN_PINNED = { services: [pinnedTo('new')] };
const oneOfTwo = { services: [pinnedTo('new'), buildService('other', { app: 'shop', 'pod-template-hash': 'old' })] };
const TWO = {
  services: [
    { name: 'shop', selector: { app: 'shop' } },
    { name: 'other', selector: { app: 'shop' } },
  ],
};

test.for<[string, string, Partial<ClusterView>, Partial<StageWish>, boolean]>([
  ['Baking', 'some, for less than 30 s', { ...GREEN_PINNED, ...green(2) }, missedFor(29, BEFORE), false],
  ['Baking', 'some, for longer', { ...GREEN_PINNED, ...green(2) }, missedFor(30, BEFORE), true],
  [
    'Baking',
    'no more than there are others',
    { ...GREEN_PINNED, ...green(2), replicaSets: [buildPods('old', 3, { current: true, ready: 2 })] },
    missedFor(90, BEFORE),
    false,
  ],
  [
    'UpdatingWorkload',
    'all, old ones are ready',
    { ...GREEN_PINNED, ...green(0), ...updating(2, 0) },
    missedFor(1),
    true,
  ],
  [
    'UpdatingWorkload',
    'all, new ones are ready',
    { ...GREEN_PINNED, ...green(0), ...updating(0, 1) },
    missedFor(1),
    true,
  ],
  [
    'UpdatingWorkload',
    'some, old and new ones are more',
    { ...GREEN_PINNED, ...green(1), ...updating(1, 1) },
    missedFor(30),
    true,
  ],
  [
    'UpdatingWorkload',
    'all, none are ready',
    { ...GREEN_PINNED, ...green(0), ...updating(0, 0) },
    missedFor(90),
    false,
  ],
  [
    'CuttingOver',
    'all, with some Services there',
    { ...oneOfTwo, ...green(0) },
    { ...missedFor(1, BEFORE), saved: TWO },
    true,
  ],
  [
    'CuttingOver',
    'some, with some Services there',
    { ...oneOfTwo, ...green(2) },
    { ...missedFor(30, BEFORE), saved: TWO },
    true,
  ],
  [
    'HandingBack',
    'all, with too few others',
    {
      ...GREEN_PINNED,
      ...UPDATED,
      ...green(0),
      replicaSets: [buildPods('next', 3, { current: true, ready: 1 })],
    },
    missedFor(1),
    true,
  ],
  ['HandingBack', 'all, with others enough', { ...GREEN_PINNED, ...UPDATED, ...green(0) }, missedFor(90), false],
])('%s: green pods are missed: %s', ([stage, , cluster, wish, isEnded]) => {
  const decision = planJob(buildAtStage({ strategy: 'BlueGreen', stage, cluster: buildCluster(cluster), ...wish }));
  const { status } = summarize(decision);
  expect(status.failure?.reason).toBe(isEnded ? 'PodsNotReady' : undefined);
});

/** Green pods of which so many are ready; the others replace ones that were evicted. */
const evicted = (ready: number, others = 3) => {
  const extra = buildExtra(3, { ready });
  const pods = extra.pods.pods
    .slice(0, ready + others)
    .map((pod) => ({ ...pod, ...(pod.ready ? {} : { isComingUp: true }) }));
  return { extra: { ...extra, pods: { ...extra.pods, pods } } };
};

test.for<[string, string, Partial<ClusterView>, Partial<StageWish>, string | undefined, string[]]>([
  ['Baking', 'some of them', { ...GREEN_PINNED, ...evicted(2) }, missedFor(90, BEFORE), undefined, []],
  [
    'Baking',
    'all of them: the old pods serve',
    { ...GREEN_PINNED, ...evicted(0) },
    missedFor(1, BEFORE),
    undefined,
    [pin('old')],
  ],
  [
    'Baking',
    'all of them, and nothing instead of them yet',
    { ...GREEN_PINNED, ...evicted(0, 0) },
    missedFor(1, BEFORE),
    undefined,
    [pin('old')],
  ],
  [
    'Baking',
    'until they are back',
    { services: [pinnedTo('old')], ...evicted(2) },
    missedFor(60, BEFORE),
    undefined,
    [],
  ],
  [
    'Baking',
    'and are back',
    { services: [pinnedTo('old')], ...green(3) },
    missedFor(60, BEFORE),
    undefined,
    [pin('new')],
  ],
  ['Draining', 'all of them', { ...GREEN_PINNED, ...evicted(0) }, missedFor(1, BEFORE), undefined, [pin('old')]],
  [
    'UpdatingWorkload',
    'while old and new pods can serve',
    { ...GREEN_PINNED, ...evicted(0), ...updating(2, 1) },
    missedFor(1),
    undefined,
    [pin(null)],
  ],
  [
    'Baking',
    'for longer than the deadline',
    { ...GREEN_PINNED, ...evicted(2) },
    missedFor(600, BEFORE),
    'PodsNotReady',
    [],
  ],
])('%s: green pods are evicted: %s', ([stage, , cluster, wish, reason, does]) => {
  const decision = planJob(buildAtStage({ strategy: 'BlueGreen', stage, cluster: buildCluster(cluster), ...wish }));
  expect(summarize(decision).status.failure?.reason).toBe(reason);
  const steered = summarize(decision).does.filter((change) => change.includes('patch Service'));
  expect(reason === undefined ? steered : []).toEqual(does);
});

test('pods that were asked for just now are coming up, not missed', () => {
  const cluster = buildCluster({ ...oneOfTwo, ...green(0) });
  const wish = { strategy: 'BlueGreen', stage: 'CuttingOver', cluster, saved: TWO } as const;
  const comingUp =
    missedFor(1, BEFORE).status?.conditions?.map((condition) => ({ ...condition, status: 'Unknown' as const })) ?? [];
  for (const known of [{ extraReplicas: 0 }, { conditions: comingUp }]) {
    const status = { ...missedFor(1, BEFORE).status, ...known };
    expect(summarize(planJob(buildAtStage({ ...wish, status }))).status.failure).toBeUndefined();
  }
});

test('pods that are coming up for long while none is ready are missed all the same', () => {
  const cluster = buildCluster({ ...oneOfTwo, ...green(0) });
  const { status: known } = missedFor(31, BEFORE);
  const conditions = known?.conditions?.map((condition) => ({ ...condition, status: 'Unknown' as const })) ?? [];
  const status = { ...known, conditions };
  const decision = planJob(buildAtStage({ strategy: 'BlueGreen', stage: 'CuttingOver', cluster, saved: TWO, status }));
  expect(summarize(decision).status.failure?.reason).toBe('PodsNotReady');
});

test.for(['Testing', 'Gate'])(
  'at %s pods that do not come up are given up at the deadline, and are nothing before',
  (stage) => {
    const cluster = buildCluster({ services: [pinnedTo('old')], ...green(2) });
    const failureAfter = (seconds: number) =>
      summarize(planJob(buildAtStage({ strategy: 'BlueGreen', stage, cluster, ...missedFor(seconds, BEFORE) }))).status
        .failure;
    expect(failureAfter(599)).toBeUndefined();
    expect(failureAfter(600)?.reason).toBe('PodsNotReady');
  },
);

/** Extra pods that somebody scaled up, or a Service that is not led to the pods that are to carry it. */
const blocked = [
  ['BlueGreen', 'Testing', { services: [pinnedTo('old')], extra: buildExtra(4) }],
  ['BlueGreen', 'Gate', { services: [pinnedTo('old')], extra: buildExtra(4) }],
  ['BlueGreen', 'Baking', { services: [pinnedTo('old')], ...GREEN }],
  ['BlueGreen', 'Draining', { services: [pinnedTo('old')], ...GREEN }],
  ['BlueGreen', 'UpdatingWorkload', { ...UPDATED, services: [buildService('shop', { app: 'shop' })] }],
  ['Canary', 'StepVerifying', { extra: buildExtra(4) }],
  ['Canary', 'StepPausing', { extra: buildExtra(4) }],
] as const;

function blockedFor(
  [strategy, stage, view]: (typeof blocked)[number],
  { seconds, promote = true, isRefused = true }: { seconds?: number; promote?: boolean; isRefused?: boolean },
) {
  const conditions: DeliveryJobStatus['conditions'] =
    seconds === undefined
      ? []
      : [
          {
            type: 'InPlace',
            status: 'False',
            reason: 'r',
            message: 'm',
            lastTransitionTime: new Date(START - seconds * 1000).toISOString(),
          },
        ];
  const moved = stage === 'UpdatingWorkload' ? RECORDED : { weight: 100, extraReplicas: 3, step: 0 };
  return buildAtStage({
    strategy,
    stage,
    seconds: 9000,
    cluster: buildCluster(view),
    status: { ...moved, conditions },
    policy: { canary: { steps: [{ weight: 75 }], trafficRouter: 'Replicas' } },
    spec: { promote },
    metadata: { generation: 2 },
    ...(isRefused ? { snapshot: { refusal: { isInvalid: false, message: 'no' } } } : {}),
  });
}

function conditionsOf({ changes }: Decision): Record<string, string> {
  const [written] = changes.flatMap((change) => (change.action === 'status' ? [change.status] : []));
  const { conditions = [] } = written as DeliveryJobStatus;
  return Object.fromEntries(conditions.map(({ type, status }) => [type, status]));
}

test.for(blocked)('%s at %s: what cannot be put right is given up at the deadline, and waited for before', (row) => {
  expect(conditionsOf(planJob(blockedFor(row, {})))).toMatchObject({ InPlace: 'False' });
  const waiting = planJob(blockedFor(row, { seconds: 599 }));
  expect(summarize(waiting).status.failure).toBeUndefined();
  expect(waiting.requeueAfterMs).toBeLessThanOrEqual(1000);
  const late = summarize(planJob(blockedFor(row, { seconds: 600 }))).status.failure;
  expect(late).toMatchObject({ reason: 'ProgressDeadlineExceeded', message: expect.stringContaining('are not where') });
});

test('a stage that waits for somebody is not blocked, whatever is not in its place', () => {
  for (const row of blocked.filter(([, stage]) => stage === 'Gate' || stage === 'StepPausing')) {
    const decision = planJob(blockedFor(row, { seconds: 9000, promote: false }));
    expect(summarize(decision).status.failure).toBeUndefined();
    expect(conditionsOf(decision)).toMatchObject({ Succeeded: 'Unknown' });
    expect(conditionsOf(decision)).not.toHaveProperty('InPlace');
  }
});

test('changes that nobody has tried since are tried before they are given up', () => {
  for (const row of blocked.filter(([, stage]) => stage !== 'UpdatingWorkload')) {
    const { status, does } = summarize(planJob(blockedFor(row, { seconds: 9000, isRefused: false })));
    expect(status.failure).toBeUndefined();
    expect(does).toHaveLength(1);
  }
});

const check = { name: 'x', initialDelaySeconds: 0, intervalSeconds: 1, count: 1, failureLimit: 0 };
const failed: Measurement = { check: 'x', passed: false, at: new Date(START), message: 'too slow' };
const baking: StageWish = {
  strategy: 'BlueGreen',
  stage: 'Baking',
  cluster: buildCluster({ services: [pinnedTo('new')], ...GREEN }),
  status: { extraReplicas: 3, weight: 100 },
  snapshot: { measurements: [failed] },
};

test('a failed check moves the traffic back with the next write', () => {
  const { changes } = planJob(buildAtStage({ ...baking, policy: { analysis: [check] } }));
  expect(changes.map(({ action }) => action)).toEqual(['status', 'event', 'patch', 'patch']);
  expect(changes[0]).toMatchObject({
    status: {
      phase: 'RollingBack',
      reason: 'ChecksFailed',
      failure: { reason: 'ChecksFailed', message: expect.stringContaining('too slow') },
      analysis: [{ name: 'x', measurements: 1, failures: 1 }],
    },
  });
  expect(changes[1]).toMatchObject({ type: 'Warning', reason: 'ChecksFailed' });
  expect(changes[2]).toMatchObject({
    object: { kind: 'Service' },
    patch: { spec: { selector: { 'pod-template-hash': 'old' } } },
  });
});

test('or holds the job until somebody promotes or aborts it, where the policy says so', () => {
  const policy: Partial<SettledPolicy> = { analysis: [check], onFailure: 'Hold' };
  const held = planJob(buildAtStage({ ...baking, policy }));
  expect(held.changes[0]).toMatchObject({ status: { phase: 'Paused', stage: 'Baking', reason: 'ChecksFailed' } });
  expect(summarize(held).status.failure).toBeUndefined();
  const holding = { ...baking, policy, status: { ...baking.status, phase: 'Paused', promotedGeneration: 1 } } as const;
  const promote = { spec: { promote: true }, metadata: { generation: 2 } };
  const promoted = planJob(buildAtStage({ ...holding, ...promote }));
  expect(promoted.changes[0]).toMatchObject({ status: { stage: 'UpdatingWorkload', promotedGeneration: 2 } });
  const aborted = planJob(buildAtStage({ ...baking, policy, spec: { abort: true } }));
  expect(aborted.changes[0]).toMatchObject({ status: { failure: { reason: 'Aborted' } } });
});

test('a promote from before a check had failed is used up, and lets nothing pass', () => {
  const policy: Partial<SettledPolicy> = { analysis: [check], onFailure: 'Hold' };
  const early = planJob(buildAtStage({ ...baking, policy, spec: { promote: true } }));
  expect(early.changes[0]).toMatchObject({ status: { phase: 'Paused', stage: 'Baking', promotedGeneration: 1 } });
  const status: DeliveryJobStatus = { ...baking.status, phase: 'Paused', promotedGeneration: 1 };
  const held = planJob(buildAtStage({ ...baking, policy, spec: { promote: true }, status }));
  expect(held.changes[0]).toMatchObject({ status: { phase: 'Paused', stage: 'Baking' } });
});

test('old pods that the Deployment may be removing get no traffic, however many are ready', () => {
  const replicaSets = [buildPods('old', 3), buildPods('next', 1, { current: true, ready: 0 })];
  const deployment = { ...updatedDeployment, status: { ...updatedDeployment.status, updatedReplicas: 1 } };
  const cluster = buildCluster({ services: [pinnedTo('new')], ...GREEN, deployment, replicaSets });
  const decision = planJob(
    buildAtStage({
      strategy: 'BlueGreen',
      stage: 'UpdatingWorkload',
      cluster,
      status: RECORDED,
      spec: { abort: true },
    }),
  );
  const { status, does } = summarize(decision);
  expect(status.stage).toBe('Reverting');
  expect(does).toEqual([`patch Service shop {${MARK}}`, expect.stringContaining('patch Deployment shop ')]);
});

const overQuota = { type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: 'exceeded quota' };

/** The Deployment gets the new version behind the pin; one pod of it fits in, as long as there is capacity. */
function behindPin(lacks: 'nothing' | 'quota' | 'nodes', ready = 3): ClusterView {
  const whole = buildDeployment({ image: NEW, updated: 1, reason: 'ReplicaSetUpdated' });
  const conditions = [...(whole.status?.conditions ?? []), ...(lacks === 'quota' ? [overQuota] : [])];
  const waits = { message: 'Unschedulable', isUsual: false, isUnscheduled: true };
  const [pod] = buildPods('new', 1, { ready: 0 }).pods;
  const pods = pod === undefined ? [] : [{ ...pod, ...(lacks === 'nodes' ? { waits } : {}) }];
  return buildCluster({
    deployment: { ...whole, status: { ...whole.status, conditions } },
    replicaSets: [buildPods('old', 3), { ...buildPods('own', 0, { current: true }), pods }],
    extra: buildExtra(3, { ready }),
    services: [pinnedTo('new')],
  });
}

test.for([
  ['quota', 3, true],
  ['nodes', 3, true],
  ['nothing', 3, false],
  ['quota', 2, false],
  ['nodes', 2, false],
] as const)(
  'behind the pin the old pods free capacity where it lacks and the extra ones are enough: %j',
  ([lacks, ready, makes]) => {
    const status = { weight: 100, extraReplicas: 3, templateFingerprint: templateFingerprint(buildTemplate(NEW)) };
    const cluster = behindPin(lacks, ready);
    const { does } = summarize(
      planJob(buildAtStage({ strategy: 'BlueGreen', stage: 'UpdatingWorkload', cluster, status })),
    );
    const patch =
      'patch Deployment shop {"spec":{"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":"100%"}}}}';
    expect(does).toEqual(makes ? [patch] : []);
  },
);

const complaining = (image: string) => {
  const deployment = buildDeployment({ image, ready: 1, updated: 0, reason: 'ReplicaSetUpdated' });
  const refused = {
    type: 'ReplicaFailure',
    status: 'True' as const,
    reason: 'FailedCreate',
    message: 'exceeded quota',
  };
  return { ...deployment, status: { ...deployment.status, conditions: [refused] } };
};

test.for<[string, number, string | undefined, boolean]>([
  ['serve nobody', 0, undefined, true],
  ['are ready', 1, undefined, false],
  ['have the traffic', 0, 'new', false],
])(
  'on the way back extra pods that %s are scaled down, or not, for old ones that a quota refuses',
  ([, ready, pin, goes]) => {
    const failure = { reason: 'CrashLoop', message: 'it crashes' };
    const services = pin === undefined ? {} : { services: [pinnedTo(pin)] };
    const cluster = buildCluster({
      deployment: complaining('registry.example.com/shop:1.0.0'),
      replicaSets: [buildPods('old', 0, { current: true }), buildPods('next', 1)],
      extra: buildExtra(3, { ready }),
      ...services,
    });
    const status = { failure, extraReplicas: 3, weight: 100 };
    const { does } = summarize(planJob(buildAtStage({ strategy: 'BlueGreen', stage: 'Reverting', cluster, status })));
    expect(does.includes('patch Deployment shop-green {"spec":{"replicas":0}}')).toBe(goes);
  },
);
