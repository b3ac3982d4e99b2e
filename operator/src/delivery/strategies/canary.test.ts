import { annotations, labels } from '@rollcall/crds/kinds.ts';
import type { CanaryPolicy, DeliveryJobStatus } from '@rollcall/crds/types.gen.ts';
import type { HttpRoute } from '@rollcall/platform/kube/builtin-kinds.ts';
import { expect, test } from 'vitest';
import { planJob } from '../job/plan.ts';
import type { ClusterView } from '../job/snapshot.ts';
import {
  buildAtStage,
  buildCluster,
  buildDeployment,
  buildExtra,
  buildPods,
  buildRoute,
  buildService,
  pinnedTo,
  type StageWish,
  summarize,
} from '../testing/builders.ts';

const MARK = { [annotations.rollingBack]: 'uid-job' };
const steps = [{ weight: 25, pauseSeconds: 30 }, { weight: 50 }, { weight: 100, pauseSeconds: 0 }];
const pin = (hash: string | null) =>
  `patch Service shop {"spec":{"selector":{"pod-template-hash":${JSON.stringify(hash)}}}}`;
const scale = (replicas: number) => `patch Deployment shop-green {"spec":{"replicas":${replicas}}}`;
const at = (step: number, extraReplicas: number) => ({ step, extraReplicas, weight: steps[step]?.weight ?? 0 });

interface Row {
  readonly stage: string;
  readonly what: string;
  readonly cluster?: Partial<ClusterView>;
  readonly wish?: Partial<StageWish>;
  readonly next?: string;
  readonly does: readonly string[];
}

const rows: Row[] = [
  { stage: 'Stepping', what: 'makes the canary', does: ['create Deployment shop-canary'] },
  { stage: 'Stepping', what: 'of the size of the step', cluster: { extra: buildExtra(0) }, does: [scale(1)] },
  {
    stage: 'Stepping',
    what: 'waits for it',
    cluster: { extra: buildExtra(1, { ready: 0 }) },
    wish: { status: at(0, 1) },
    does: [],
  },
  {
    stage: 'Stepping',
    what: 'until the deadline',
    cluster: { extra: buildExtra(1, { ready: 0 }) },
    wish: { status: at(0, 1), seconds: 600 },
    next: 'Reverting',
    does: [
      `patch Service shop {"metadata":{"annotations":${JSON.stringify(MARK)}},"spec":{"selector":{"pod-template-hash":"old"}}}`,
      `patch Deployment shop {"metadata":{"annotations":${JSON.stringify(MARK)}}}`,
    ],
  },
  {
    stage: 'Stepping',
    what: 'then pauses',
    cluster: { extra: buildExtra(1) },
    wish: { status: at(0, 1) },
    next: 'StepPausing',
    does: [],
  },
  {
    stage: 'Stepping',
    what: 'or verifies',
    cluster: { extra: buildExtra(1) },
    wish: { status: at(0, 1), policy: { canary: { steps, trafficRouter: 'Replicas' }, requireHeartbeat: true } },
    next: 'StepVerifying',
    does: [],
  },
  {
    stage: 'Stepping',
    what: 'all traffic is a pin',
    cluster: { extra: buildExtra(3) },
    wish: { status: at(2, 3) },
    does: [pin('new')],
  },
  {
    stage: 'Stepping',
    what: 'a step without pause leads to the next',
    cluster: { extra: buildExtra(3), services: [pinnedTo('new')] },
    wish: { status: at(2, 3) },
    next: 'FullUp',
    does: [],
  },
  {
    stage: 'StepPausing',
    what: 'for its time',
    cluster: { extra: buildExtra(1) },
    wish: { status: at(0, 1), seconds: 29 },
    does: [],
  },
  {
    stage: 'StepPausing',
    what: 'then goes on',
    cluster: { extra: buildExtra(1) },
    wish: { status: at(0, 1), seconds: 30 },
    next: 'Stepping',
    does: [scale(3)],
  },
  {
    stage: 'StepPausing',
    what: 'or until a promote',
    cluster: { extra: buildExtra(1) },
    wish: { status: at(0, 1), spec: { promote: true } },
    next: 'Stepping',
    does: [scale(3)],
  },
  {
    stage: 'StepPausing',
    what: 'without a time: for ever',
    cluster: { extra: buildExtra(3) },
    wish: { status: at(1, 3), seconds: 90_000 },
    does: [],
  },
  {
    stage: 'StepPausing',
    what: 'goes back when no canary is ready any more',
    cluster: { extra: buildExtra(3, { ready: 0 }) },
    wish: { status: at(1, 3) },
    next: 'Reverting',
    does: [
      `patch Service shop {"metadata":{"annotations":${JSON.stringify(MARK)}},"spec":{"selector":{"pod-template-hash":"old"}}}`,
      `patch Deployment shop {"metadata":{"annotations":${JSON.stringify(MARK)}}}`,
    ],
  },
  {
    stage: 'FullUp',
    what: 'as many as the Deployment has',
    cluster: { extra: buildExtra(1) },
    wish: { status: at(0, 1) },
    does: [scale(3)],
  },
  {
    stage: 'FullUp',
    what: 'then all traffic',
    cluster: { extra: buildExtra(3) },
    wish: { status: at(1, 3) },
    next: 'CuttingOver',
    does: [pin('new')],
  },
  {
    stage: 'CuttingOver',
    what: 'and drains',
    cluster: { extra: buildExtra(3), services: [pinnedTo('new')] },
    wish: { status: at(1, 3) },
    next: 'Draining',
    does: [],
  },
];

test.for(rows)('$stage: $what', ({ stage, cluster, wish, next, does }) => {
  const canary = { steps, trafficRouter: 'Replicas' } as const;
  const decision = planJob(
    buildAtStage({
      strategy: 'Canary',
      stage,
      cluster: buildCluster(cluster),
      status: { step: 0 },
      policy: { canary },
      ...wish,
    }),
  );
  const summary = summarize(decision);
  expect(summary.status.stage ?? stage).toBe(next ?? stage);
  expect(summary.does).toEqual(does);
});

test("the canary carries the labels of the user's pods and one of its own, which its selector has too", () => {
  const { changes } = planJob(buildAtStage({ strategy: 'Canary', stage: 'Stepping', status: { step: 0 } }));
  const own = { [labels.job]: 'uid-job' };
  expect(changes.find(({ action }) => action === 'create')).toMatchObject({
    manifest: {
      metadata: { namespace: 'default', labels: own, ownerReferences: [{ uid: 'uid-job' }] },
      spec: {
        replicas: 0,
        selector: { matchLabels: { app: 'shop', ...own } },
        template: { metadata: { labels: { app: 'shop', ...own } } },
      },
    },
  });
  const elsewhere = { workload: { namespace: 'prod', name: 'shop', uid: 'uid-shop' }, step: 0 };
  const there = planJob(buildAtStage({ strategy: 'Canary', stage: 'Stepping', status: elsewhere })).changes;
  const made = there.find(({ action }) => action === 'create');
  expect(made).toMatchObject({ manifest: { metadata: { namespace: 'prod' } } });
  expect(made?.action === 'create' && made.manifest.metadata.ownerReferences).toBeUndefined();
});

const rules: NonNullable<HttpRoute['spec']['rules']> = [
  { backendRefs: [{ name: 'shop', weight: 1 }], filters: [{ type: 'X' }] },
];
const weighed = (stable: number, canary: number) =>
  buildRoute([
    {
      backendRefs: [
        { name: 'shop', weight: stable },
        { name: 'shop-canary', weight: canary },
      ],
      filters: [{ type: 'X' }],
    },
  ]);
const beside = { extraServices: new Map([['shop', buildService('shop-canary')]]) };

/** @param at since when the canary's pods are ready. */
const readySince = (at: string) => ({
  type: 'PodsReady',
  status: 'True' as const,
  reason: 'Ready',
  message: 'm',
  lastTransitionTime: at,
});

function decideRouted(stage: string, cluster: Partial<ClusterView>, wish: Partial<StageWish> = {}) {
  return planJob(
    buildAtStage({
      strategy: 'Canary',
      stage,
      cluster: buildCluster({ services: [pinnedTo('old')], routes: [buildRoute(rules)], ...cluster }),
      status: { step: 0, extraReplicas: 1, conditions: [readySince('2020-01-01T00:00:00Z')] },
      saved: { routes: [{ name: 'shop', rules }] },
      policy: { canary: { steps, trafficRouter: 'GatewayAPI' } },
      ...wish,
    }),
  );
}

const routed = (...wish: Parameters<typeof decideRouted>) => summarize(decideRouted(...wish));

test('routes are observed every five seconds, also while a job waits for nothing but a promote', () => {
  const policy = { canary: { steps: [{ weight: 25 }], trafficRouter: 'GatewayAPI' as const } };
  const cluster = { ...beside, extra: buildExtra(1), routes: [weighed(3, 1)] };
  const paused = decideRouted('StepPausing', cluster, { policy });
  expect(summarize(paused)).toMatchObject({ does: [], status: { phase: 'Paused' } });
  expect(paused.requeueAfterMs).toBe(5000);
});

test('behind a Gateway the Services keep to the old pods, and the canary gets its own', () => {
  expect(routed('Routing', { services: [buildService()] }).does).toEqual([pin('old'), 'create Service shop-canary']);
  expect(routed('Routing', beside).status.stage).toBe('Stepping');
});

test("weights are set when the canary is ready, and seen as somebody else's when they are", () => {
  expect(routed('Stepping', { ...beside, extra: buildExtra(1, { ready: 0 }) }).does).toEqual([]);
  const [patch] = routed('Stepping', { ...beside, extra: buildExtra(1), routes: [weighed(1, 0)] }).does;
  expect(patch).toContain('"weight":3');
  expect(patch).toContain('shop-canary');
  expect(routed('Stepping', { ...beside, extra: buildExtra(1), routes: [weighed(3, 1)] }).status.stage).toBe(
    'StepPausing',
  );
  const foreign = routed('StepPausing', { ...beside, extra: buildExtra(1), routes: [weighed(5, 2)] });
  expect(foreign.status.failure).toMatchObject({ reason: 'ChangedFromOutside' });
  expect(foreign.does).toEqual([
    `patch Service shop {"metadata":{"annotations":${JSON.stringify(MARK)}}}`,
    `patch HTTPRoute shop {"metadata":{"annotations":${JSON.stringify(MARK)}},"spec":{"rules":[{"backendRefs":[{"name":"shop","weight":7}],"filters":[{"type":"X"}]}]}}`,
    `patch Deployment shop {"metadata":{"annotations":${JSON.stringify(MARK)}}}`,
  ]);
});

test.for<[string, HttpRoute['spec']['rules'], HttpRoute['spec']['rules']]>([
  [
    'with a filter more',
    [
      {
        backendRefs: [
          { name: 'shop', weight: 3 },
          { name: 'shop-canary', weight: 1 },
        ],
        filters: [{ type: 'Y' }],
      },
    ],
    [{ backendRefs: [{ name: 'shop', weight: 4 }], filters: [{ type: 'Y' }] }],
  ],
  [
    'while the canary has everything',
    [
      {
        backendRefs: [
          { name: 'shop', weight: 0 },
          { name: 'shop-canary', weight: 1 },
          { name: 'elsewhere', weight: 1 },
        ],
      },
    ],
    [
      {
        backendRefs: [
          { name: 'shop', weight: 1 },
          { name: 'elsewhere', weight: 1 },
        ],
      },
    ],
  ],
  ['with the canary alone', [{ backendRefs: [{ name: 'shop-canary' }] }], [{ backendRefs: [{ name: 'shop' }] }]],
  ['without the canary', [{ backendRefs: [{ name: 'elsewhere' }] }], undefined],
  ['without rules', undefined, undefined],
])('a route edited from outside keeps all but the canary: %s', ([, edited, wanted]) => {
  const cluster = { ...beside, extra: buildExtra(1), routes: [buildRoute(edited)] };
  const spec = wanted === undefined ? '' : `,"spec":${JSON.stringify({ rules: wanted })}`;
  const going = routed('StepPausing', cluster);
  expect(going.status.failure).toMatchObject({ reason: 'ChangedFromOutside' });
  expect(going.does[1]).toBe(`patch HTTPRoute shop {"metadata":{"annotations":${JSON.stringify(MARK)}}${spec}}`);
  const failed = { failure: { reason: 'ChangedFromOutside', message: 'm' }, extraReplicas: 1 };
  const ending = routed('Finishing', cluster, { status: failed });
  expect(ending.does.filter((text) => text.includes('HTTPRoute'))).toEqual(
    wanted === undefined ? [] : [`patch HTTPRoute shop {"spec":${JSON.stringify({ rules: wanted })}}`],
  );
});

test('routes wait until gateways know the first pods of a canary', () => {
  const cluster = { ...beside, extra: buildExtra(1), routes: [weighed(1, 0)] };
  const just = decideRouted('Stepping', cluster, { status: { step: 0, extraReplicas: 1 } });
  expect(summarize(just)).toMatchObject({ does: [], status: { stage: 'Stepping' } });
  expect(just.requeueAfterMs).toBe(2000);
});

test('routes lead to no canary without pods, also where no pods are asked for', () => {
  const empty = { deployment: buildDeployment({ replicas: 0 }), replicaSets: [buildPods('old', 0, { current: true })] };
  const [patch] = routed('Stepping', { ...beside, ...empty, extra: buildExtra(1, { ready: 0 }) }).does;
  expect(patch).toContain('{"name":"shop","weight":1},{"name":"shop-canary","weight":0}');
});

test('on the way back the saved rules return with the very next write', () => {
  const { does } = routed(
    'StepPausing',
    { ...beside, extra: buildExtra(1), routes: [weighed(3, 1)] },
    { spec: { abort: true } },
  );
  expect(does[1]).toContain('patch HTTPRoute shop');
  expect(does[1]).toContain(JSON.stringify({ rules }).slice(1, -1));
});

test('handing back, the Services come before the routes', () => {
  const deployment = buildDeployment({ image: 'registry.example.com/shop:1.1.0' });
  const replicaSets = [buildPods('next', 3, { current: true })];
  const cluster = { ...beside, extra: buildExtra(3), deployment, replicaSets, routes: [weighed(3, 1)] };
  const wish = { status: { step: 2, extraReplicas: 3, weight: 100 } };
  expect(routed('HandingBack', { ...cluster, services: [pinnedTo('new')] }, wish).does).toEqual([pin('next')]);
  const [patch] = routed('HandingBack', { ...cluster, services: [pinnedTo('next')] }, wish).does;
  expect(patch).toContain('patch HTTPRoute shop');
  expect(
    routed('HandingBack', { ...cluster, services: [pinnedTo('next')], routes: [buildRoute(rules)] }, wish).status.stage,
  ).toBe('DrainingExtra');
});

test.for<[string, number, Partial<ClusterView>, number]>([
  ['one of one and one', 1, { extra: buildExtra(1), replicaSets: [buildPods('old', 1, { current: true })] }, 50],
  ['one of one and three', 10, { extra: buildExtra(1) }, 25],
  ['not ready yet', 10, { extra: buildExtra(1, { ready: 0 }) }, 0],
  [
    'of two that are left',
    25,
    { extra: buildExtra(1), replicaSets: [buildPods('old', 3, { current: true, ready: 1 })] },
    50,
  ],
  ['all by a pin', 100, { extra: buildExtra(3), services: [pinnedTo('new')] }, 100],
  ['none by a pin', 10, { extra: buildExtra(1), services: [pinnedTo('old')] }, 0],
])('what a weight comes to by replicas: %s', ([, weight, cluster, actualWeight]) => {
  const canary: CanaryPolicy = { steps: [{ weight }], trafficRouter: 'Replicas' };
  const view = buildCluster(cluster);
  const paused = { strategy: 'Canary', stage: 'StepPausing', cluster: view, policy: { canary } } as const;
  const { changes } = planJob(buildAtStage({ ...paused, status: { step: 0, extraReplicas: 4, weight } }));
  const [write] = changes.filter(({ action }) => action === 'status');
  expect(write).toMatchObject({ status: { weight, actualWeight } });
});

function messageAt(count: number, weight: number): string | undefined {
  const canary: CanaryPolicy = { steps: [{ weight }], trafficRouter: 'Replicas' };
  const cluster = buildCluster({ extra: buildExtra(count) });
  const status = { step: 0, extraReplicas: count };
  const { changes } = planJob(
    buildAtStage({ strategy: 'Canary', stage: 'StepPausing', cluster, policy: { canary }, status }),
  );
  const [write] = changes;
  return (write?.action === 'status' ? (write.status as DeliveryJobStatus) : undefined)?.message;
}

test('the message of a pause says what the new version has, and what it was to have where that is another share', () => {
  expect(messageAt(1, 10)).toBe('1.1.0 has 25 % of the traffic (of 10 % asked for); waits for promote');
  expect(messageAt(3, 50)).toBe('1.1.0 has 50 % of the traffic; waits for promote');
});

/** A canary of a Deployment that asks for fewer pods by now. */
function oversized(stage: string, replicas: number, { pin, seconds = 40 }: { pin?: string; seconds?: number } = {}) {
  const size = {
    deployment: buildDeployment({ replicas }),
    replicaSets: [buildPods('old', replicas, { current: true })],
  };
  const services = pin === undefined ? {} : { services: [pinnedTo(pin)] };
  const cluster = buildCluster({ ...size, ...services, extra: buildExtra(2) });
  const policy = { canary: { steps: [{ weight: 10 }], trafficRouter: 'Replicas' as const } };
  const status = { step: 0, weight: 10, extraReplicas: 2 };
  return summarize(planJob(buildAtStage({ strategy: 'Canary', stage, seconds, cluster, policy, status })));
}
const smaller = (replicas: number) => `patch Deployment shop-green {"spec":{"replicas":${replicas}}}`;

test('a canary becomes smaller with its Deployment, once its pods have had no traffic for as long as they are drained', () => {
  expect(oversized('StepPausing', 20)).toMatchObject({ does: [], status: { stage: 'StepPausing' } });
  const pin = 'patch Service shop {"spec":{"selector":{"pod-template-hash":"old"}}}';
  expect(oversized('StepPausing', 2)).toMatchObject({ does: [pin], status: { stage: 'Withdrawing' } });
  expect(oversized('Withdrawing', 2, { pin: 'old' })).toMatchObject({ status: { stage: 'Shrinking' } });
  expect(oversized('Shrinking', 2, { pin: 'old', seconds: 29 }).does).toEqual([]);
  expect(oversized('Shrinking', 2, { pin: 'old', seconds: 30 }).does).toEqual([smaller(1)]);
});

test('one of a Deployment that asks for no pods goes at once', () => {
  expect(oversized('StepPausing', 0)).toMatchObject({ status: { stage: 'Withdrawing' } });
  expect(oversized('Shrinking', 0, { seconds: 0 }).does).toEqual([smaller(0)]);
});

test('traffic that cannot be withdrawn from a canary that is too large fails the job in the end', () => {
  expect(oversized('Withdrawing', 2, { seconds: 599 }).status.failure).toBeUndefined();
  expect(oversized('Withdrawing', 2, { seconds: 600 }).status.failure?.reason).toBe('ProgressDeadlineExceeded');
});
