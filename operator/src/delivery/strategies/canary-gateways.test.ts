import type { HttpRoute } from '@rollcall/platform/kube/builtin-kinds.ts';
import { expect, test } from 'vitest';
import { planJob } from '../job/plan.ts';
import {
  buildAtStage,
  buildCluster,
  buildExtra,
  buildRoute,
  buildService,
  pinnedTo,
  START,
  summarize,
} from '../testing/builders.ts';

const rules = [{ backendRefs: [{ name: 'shop', weight: 1 }] }];
const introduced = [
  {
    backendRefs: [
      { name: 'shop', weight: 1 },
      { name: 'shop-canary', weight: 0 },
    ],
  },
];
const GENERATION = 7;

type Parents = NonNullable<NonNullable<HttpRoute['status']>['parents']>;

/** @param readyForMs how long gateways could have known the canary's pods. */
function decide(stage: string, route: HttpRoute, { readyForMs = 5000, seconds = 0 } = {}) {
  const lastTransitionTime = new Date(START - readyForMs).toISOString();
  const decision = planJob(
    buildAtStage({
      strategy: 'Canary',
      stage,
      seconds,
      cluster: buildCluster({
        services: [pinnedTo('old')],
        routes: [route],
        extraServices: new Map([['shop', buildService('shop-canary')]]),
        extra: buildExtra(1),
      }),
      status: {
        step: 0,
        extraReplicas: 1,
        conditions: [{ type: 'PodsReady', status: 'True', reason: 'Ready', message: 'm', lastTransitionTime }],
      },
      saved: { routes: [{ name: 'shop', rules }] },
      policy: { canary: { steps: [{ weight: 25 }], trafficRouter: 'GatewayAPI' }, drainSeconds: 10 },
    }),
  );
  const [written] = decision.changes.flatMap((change) => (change.action === 'status' ? [change.status] : []));
  return { ...summarize(decision), written, requeueAfterMs: decision.requeueAfterMs };
}

function routeWith(current: HttpRoute['spec']['rules'], parents?: Parents): HttpRoute {
  const route = buildRoute(current);
  const status = parents === undefined ? {} : { status: { parents } };
  return { ...route, ...status, metadata: { ...route.metadata, generation: GENERATION } };
}

const resolved = (status: 'True' | 'False', observedGeneration?: number): Parents[number] => ({
  conditions: [
    { type: 'Accepted', status: 'True', observedGeneration: 1 },
    { type: 'ResolvedRefs', status, ...(observedGeneration === undefined ? {} : { observedGeneration }) },
  ],
});

test('routes name a canary before they give it a share', () => {
  const { does, status } = decide('Stepping', routeWith(rules, [resolved('True', GENERATION)]));
  expect(does).toEqual([`patch HTTPRoute shop ${JSON.stringify({ spec: { rules: introduced } })}`]);
  expect(status.stage ?? 'Stepping').toBe('Stepping');
});

test.for<[string, Parents]>([
  ['has not seen the rules', [resolved('True', GENERATION - 1)]],
  ['does not know the Service or its endpoints', [resolved('False', GENERATION)]],
  ['of several is behind', [resolved('True', GENERATION), resolved('True', GENERATION - 1)]],
])('a canary gets no share while a gateway %s', ([, parents]) => {
  expect(decide('Stepping', routeWith(introduced, parents))).toMatchObject({
    does: [],
    written: { message: 'Waits for the gateways of HTTPRoute shop' },
    requeueAfterMs: 1000,
  });
});

test.for<[string, Parents | undefined, number]>([
  ['they all know', [resolved('True', GENERATION), resolved('True', GENERATION)], 5000],
  ['they do not say what they have seen', [resolved('True')], 5000],
  ['none says anything', undefined, 5000],
  ['they say nothing of backends', [{}, { conditions: [{ type: 'Accepted', status: 'True' }] }], 5000],
  ['one does not follow for half a minute', [resolved('False', GENERATION)], 30_000],
])('it gets its share where %s', ([, parents, readyForMs]) => {
  const { does } = decide('Stepping', routeWith(introduced, parents), { readyForMs });
  expect(does).toHaveLength(1);
  expect(does[0]).toContain('{"name":"shop-canary","weight":1}');
});

const stageAt = (route: HttpRoute, seconds: number) => decide('DrainingExtra', route, { seconds }).status.stage;

test('extra pods are kept until gateways know that they have no traffic, for half a minute more', () => {
  const late = routeWith(rules, [resolved('True', GENERATION - 1)]);
  expect(stageAt(late, 10) ?? 'DrainingExtra').toBe('DrainingExtra');
  expect(stageAt(late, 39) ?? 'DrainingExtra').toBe('DrainingExtra');
  expect(stageAt(late, 40)).toBe('RemovingExtra');
  expect(stageAt(routeWith(rules, [resolved('True', GENERATION)]), 10)).toBe('RemovingExtra');
});
