import type { CanaryPolicy, DeliveryJobStatus } from '@rollcall/crds/types.gen.ts';
import { expect, test } from 'vitest';
import { planJob } from '../job/plan.ts';
import type { ClusterView, PodGroup, SavedState } from '../job/snapshot.ts';
import {
  buildAtStage,
  buildCluster,
  buildDeployment,
  buildExtra,
  buildPods,
  buildPolicy,
  buildRoute,
  buildService,
  pinnedTo,
  type StageWish,
  summarize,
} from '../testing/builders.ts';

const NEW = 'registry.example.com/shop:1.1.0';
const rules = [{ backendRefs: [{ name: 'shop', weight: 1 }] }];
const weighed = (stable: number, canary: number) =>
  buildRoute([
    {
      backendRefs: [
        { name: 'shop', weight: stable },
        { name: 'shop-canary', weight: canary },
      ],
    },
  ]);
const settled = {
  type: 'PodsReady',
  status: 'True' as const,
  reason: 'Ready',
  message: 'm',
  lastTransitionTime: '2020-01-01T00:00:00Z',
};

/** Ten pods, one step of 50 %. */
function at(
  stage: string,
  cluster: Partial<ClusterView>,
  wish: Partial<StageWish> & { maxSurge?: number | string } = {},
) {
  const { maxSurge = 2, ...rest } = wish;
  const canary: CanaryPolicy = { maxSurge, steps: [{ weight: 50 }], trafficRouter: 'Replicas' };
  const ten = { deployment: buildDeployment({ replicas: 10 }), ...cluster };
  const status = { step: 0, weight: 50, extraReplicas: 2, ...wish.status };
  const view = buildCluster(ten);
  const decision = planJob(
    buildAtStage({ strategy: 'Canary', stage, cluster: view, policy: { canary }, ...rest, status }),
  );
  const written = decision.changes.find(({ action }) => action === 'status');
  return {
    does: summarize(decision).does,
    status: (written?.action === 'status' ? written.status : {}) as DeliveryJobStatus,
  };
}

test.for<[number | string, number]>([
  [2, 2],
  ['25%', 3],
  ['1%', 1],
  [12, 10],
])('a canary with the maxSurge %s of ten has at most %s pods', ([maxSurge, size]) => {
  const { does } = at('Stepping', { extra: buildExtra(0) }, { maxSurge, status: { extraReplicas: 0 } });
  expect(does).toEqual([`patch Deployment shop-green {"spec":{"replicas":${size}}}`]);
});

test('what it has is said beside what was asked for', () => {
  const { status } = at('StepPausing', { extra: buildExtra(2) });
  expect(status).toMatchObject({ stage: 'StepPausing', actualWeight: 17, weight: 50 });
  expect(status.message).toBe('1.1.0 has 17 % of the traffic (of 50 % asked for); waits for promote');
});

const asksFor = (policy: Partial<CanaryPolicy>, routes?: ClusterView['routes']): SavedState['departure'] => {
  const canary = { steps: [{ weight: 50 }], trafficRouter: 'Replicas' as const, ...policy };
  const deployment = buildDeployment({ replicas: 10 });
  const cluster = buildCluster({ deployment, routes });
  const snapshot = { policy: buildPolicy({ canary }), saved: undefined };
  const wish = { strategy: 'Canary', stage: 'Preparing', cluster, spec: { strategy: 'Canary' }, snapshot } as const;
  const [created] = planJob(buildAtStage(wish)).changes;
  return ((created?.action === 'create' ? created.manifest : {}) as { data?: SavedState }).data?.departure;
};

test('a job says at its beginning which weights are out of reach', () => {
  expect(asksFor({ maxSurge: 2 })).toEqual({
    reason: 'SurgeLimited',
    message: 'At most 2 pods beside the 10 of Deployment shop (maxSurge) reach 16 %',
  });
  expect(asksFor({ maxSurge: 10 })).toBeUndefined();
  expect(asksFor({ maxSurge: 5, trafficRouter: 'GatewayAPI' }, [buildRoute(rules)])).toBeUndefined();
  expect(asksFor({ maxSurge: 4, trafficRouter: 'GatewayAPI' }, [buildRoute(rules)])?.message).toContain('reach 40 %');
  const both = asksFor({ maxSurge: 2, trafficRouter: 'GatewayAPI' }, undefined);
  expect(both).toMatchObject({ reason: 'GatewayAPIMissing' });
  expect(both?.message).toContain('knows no HTTPRoutes. At most 2 pods');
});

/** With routes, which need no ratio of pods. */
function routed(stage: string, cluster: Partial<ClusterView>, wish: Parameters<typeof at>[2] = {}) {
  const canary: CanaryPolicy = { maxSurge: wish.maxSurge ?? 2, steps: [{ weight: 50 }], trafficRouter: 'GatewayAPI' };
  const around = { extraServices: new Map([['shop', buildService('shop-canary')]]), services: [pinnedTo('old')] };
  const rest = { saved: { routes: [{ name: 'shop', rules }] }, policy: { canary }, ...wish };
  return at(stage, { ...around, ...cluster }, { ...rest, status: { conditions: [settled], ...wish.status } });
}

test('routes give no pod of a canary more than one of the Deployment would have', () => {
  const step = (extra: number, maxSurge: number) =>
    routed(
      'Stepping',
      { extra: buildExtra(extra), routes: [buildRoute(rules)] },
      { maxSurge, status: { extraReplicas: extra } },
    ).does[0];
  expect(step(2, 2)).toContain('"shop","weight":4},{"name":"shop-canary","weight":1}');
  expect(step(5, 5)).toContain('"shop","weight":1},{"name":"shop-canary","weight":1}');
  // And that is known to be the job's own.
  expect(routed('Stepping', { extra: buildExtra(2), routes: [weighed(4, 1)] }).status).toMatchObject({
    stage: 'StepPausing',
    actualWeight: 20,
  });
});

const full = (cluster: Partial<ClusterView>) => routed('FullUp', { extra: buildExtra(2), ...cluster });

test('after the last step routes and Services lead to all pods, and the Deployment is next', () => {
  expect(full({ routes: [weighed(4, 1)] }).does).toEqual([
    `patch HTTPRoute shop {"spec":{"rules":${JSON.stringify(rules)}}}`,
  ]);
  const unpin = 'patch Service shop {"spec":{"selector":{"pod-template-hash":null}}}';
  expect(full({ routes: [buildRoute(rules)] }).does).toEqual([unpin]);
  expect(full({ routes: [buildRoute(rules)], services: [buildService()] }).status).toMatchObject({
    stage: 'UpdatingWorkload',
    weight: 100,
  });
});

const inPlace = (maxSurge: number, maxUnavailable: number) => ({ rollingUpdate: { maxSurge, maxUnavailable } });

function strategyAt(stage: string, cluster: Partial<ClusterView>, wish: Parameters<typeof at>[2] = {}): unknown {
  const patch = at(stage, cluster, wish).does.find((text) => text.startsWith('patch Deployment shop {'));
  const { spec } = JSON.parse(patch?.slice('patch Deployment shop '.length) ?? '{}') as {
    spec?: { strategy?: unknown };
  };
  return spec?.strategy;
}

const mixed = (ready: number): Partial<ClusterView> => {
  const deployment = buildDeployment({ replicas: 10, image: NEW, ready, reason: 'ReplicaSetUpdated' });
  const replicaSets: PodGroup[] = [buildPods('old', 6), buildPods('next', 4, { current: true, ready: ready - 6 })];
  return { deployment, replicaSets };
};

test('its pods stand in for as many of the Deployment, which has none beside them', () => {
  expect(strategyAt('UpdatingWorkload', { extra: buildExtra(2) })).toEqual(inPlace(0, 2));
  expect(strategyAt('UpdatingWorkload', { ...mixed(10), extra: buildExtra(2, { ready: 1 }) })).toEqual(inPlace(0, 1));
});

test('on the way back there are no more pods either', () => {
  const failure = { reason: 'Aborted', message: 'm' };
  const back = (ready: number, extra: ClusterView['extra']) =>
    strategyAt('Reverting', { ...mixed(ready), extra }, { status: { failure } });
  expect(back(10, buildExtra(2))).toEqual(inPlace(0, 2));
  expect(back(7, buildExtra(2))).toEqual(inPlace(0, 3));
  // Pods that go stand in for nobody.
  expect(back(10, buildExtra(2, { replicas: 0 }))).toEqual(inPlace(2, 0));
});
