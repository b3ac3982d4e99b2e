import { annotations } from '@rollcall/crds/kinds.ts';
import { describe, expect, test } from 'vitest';
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
  NEW,
  pinnedTo,
  START,
  type StageWish,
  summarize,
} from '../testing/builders.ts';

const OLD_PODS = ['shop-old-0', 'shop-old-1', 'shop-old-2'];
const NEW_PODS = ['shop-new-0', 'shop-new-1', 'shop-new-2'];

const behind = (service: string, ...pods: readonly string[]) => new Map([[service, new Set(pods)]]);

function decide(wish: StageWish, cluster: Partial<ClusterView>) {
  const decision = planJob(buildAtStage({ ...wish, cluster: buildCluster(cluster) }));
  const { status, does } = summarize(decision);
  return { stage: status.stage, failure: status.failure?.reason, does, requeueAfterMs: decision.requeueAfterMs };
}

describe('a cut-over is over when the Services lead to the new pods', () => {
  const wish = { strategy: 'BlueGreen', stage: 'CuttingOver', status: { extraReplicas: 3 } } as const;
  const cluster = { services: [pinnedTo('new')], extra: buildExtra(3) };

  test.for([
    ['an old one is still there', [...NEW_PODS, 'shop-old-0']],
    ['one is not there yet', NEW_PODS.slice(1)],
    ['the old ones are', OLD_PODS],
  ] as const)('not while %s', ([, pods]) => {
    const { stage, does, requeueAfterMs } = decide(wish, { ...cluster, endpoints: behind('shop', ...pods) });
    expect({ stage, does, requeueAfterMs }).toEqual({ stage: 'CuttingOver', does: [], requeueAfterMs: 1000 });
  });

  test('then it is', () => {
    expect(decide(wish, { ...cluster, endpoints: behind('shop', ...NEW_PODS) }).stage).toBe('Baking');
  });

  test.for([
    ['where nobody may know', 'forbidden'],
    ['where nobody fills EndpointSlices', behind('shop')],
  ] as const)('and %s', ([, endpoints]) => {
    expect(decide(wish, { ...cluster, endpoints }).stage).toBe('Baking');
  });

  describe('while the API server does not list EndpointSlices', () => {
    test('the Services are pinned nevertheless', () => {
      const { stage, does } = decide(wish, { ...cluster, services: [pinnedTo('old')], endpoints: 'unknown' });
      expect(stage).toBe('CuttingOver');
      expect(does).toEqual([expect.stringContaining('patch Service shop')]);
    });

    test('it is not over', () => {
      const { stage, does, requeueAfterMs } = decide(wish, { ...cluster, endpoints: 'unknown' });
      expect({ stage, does, requeueAfterMs }).toEqual({ stage: 'CuttingOver', does: [], requeueAfterMs: 1000 });
    });

    test('until the progress deadline', () => {
      const late = decide({ ...wish, seconds: 600 }, { ...cluster, endpoints: 'unknown' });
      expect(late).toMatchObject({ stage: 'Reverting', failure: 'ProgressDeadlineExceeded' });
    });
  });

  test('it goes back when that takes longer than the progress deadline', () => {
    const late = decide({ ...wish, seconds: 600 }, { ...cluster, endpoints: behind('shop', ...OLD_PODS) });
    expect(late).toMatchObject({ stage: 'Reverting', failure: 'ProgressDeadlineExceeded' });
  });
});

test('the traffic is handed back when the Services lead to the pods of the Deployment', () => {
  const wish = {
    strategy: 'BlueGreen',
    stage: 'HandingBack',
    status: { extraReplicas: 3, templateFingerprint: buildCluster({ deployment: rolledOut() }).fingerprint },
  } as const;
  const cluster = {
    deployment: rolledOut(),
    services: [pinnedTo('next')],
    extra: buildExtra(3),
    replicaSets: [buildPods('next', 3, { current: true })],
  };
  expect(decide(wish, { ...cluster, endpoints: behind('shop', ...NEW_PODS) }).stage).toBe('HandingBack');
  const followed = behind('shop', 'shop-next-0', 'shop-next-1', 'shop-next-2');
  expect(decide(wish, { ...cluster, endpoints: followed }).stage).toBe('DrainingExtra');
});

function rolledOut() {
  return buildDeployment({ image: NEW });
}

describe('a way back is over when the Services lead to the old pods', () => {
  const failure = { reason: 'Aborted', message: 'The job was aborted' } as const;
  const wish = {
    strategy: 'BlueGreen',
    stage: 'Reverting',
    status: { phase: 'RollingBack', extraReplicas: 3, failure },
  } as const;
  const marked = { [annotations.rollingBack]: 'uid-job' };
  const service = pinnedTo('old');
  const deployment = buildDeployment({ metadata: { annotations: marked } });
  const cluster = {
    services: [{ ...service, metadata: { ...service.metadata, annotations: marked } }],
    deployment,
    extra: buildExtra(3),
  };

  test('not before', () => {
    const { stage, requeueAfterMs } = decide(wish, { ...cluster, endpoints: behind('shop', ...NEW_PODS) });
    expect({ stage, requeueAfterMs }).toEqual({ stage: 'Reverting', requeueAfterMs: 1000 });
  });

  test('then it is', () => {
    expect(decide(wish, { ...cluster, endpoints: behind('shop', ...OLD_PODS) }).stage).toBe('Restoring');
  });

  test('while the API server does not list EndpointSlices, it is gone, and not over', () => {
    const { stage, does } = decide(wish, { ...cluster, services: [pinnedTo('new')], endpoints: 'unknown' });
    expect(stage).toBe('Reverting');
    expect(does).toEqual([expect.stringContaining('patch Service shop')]);
    expect(decide(wish, { ...cluster, endpoints: 'unknown' }).stage).toBe('Reverting');
  });

  test('nor longer than the progress deadline', () => {
    const late = decide({ ...wish, seconds: 600 }, { ...cluster, endpoints: behind('shop', ...NEW_PODS) });
    expect(late.stage).toBe('Restoring');
  });
});

describe('routes lead to a canary once its Service leads to its pods', () => {
  const rules = [{ backendRefs: [{ name: 'shop' }] }];
  const readyAt = { lastTransitionTime: new Date(START - 60_000).toISOString(), message: 'm' };
  const wish = {
    strategy: 'Canary',
    stage: 'Stepping',
    status: {
      step: 0,
      extraReplicas: 1,
      conditions: [{ type: 'PodsReady', status: 'True', reason: 'Ready', ...readyAt }],
    },
    saved: { routes: [{ name: 'shop', rules }] },
    policy: { canary: { steps: [{ weight: 25 }], trafficRouter: 'GatewayAPI' } },
  } as const satisfies StageWish;
  const cluster = {
    services: [pinnedTo('old')],
    extraServices: new Map([['shop', buildService('shop-canary')]]),
    extra: buildExtra(1),
    routes: [buildRoute(rules)],
  };
  const stable = new Set(OLD_PODS);

  test.for([
    [
      'its pods are ready, but not behind it',
      new Map([
        ['shop', stable],
        ['shop-canary', new Set<string>()],
      ]),
    ],
    ['nobody has asked yet', undefined],
    ['the API server does not list EndpointSlices', 'unknown'],
  ] as const)('not while %s', ([, endpoints]) => {
    const { stage, does, requeueAfterMs } = decide(wish, { ...cluster, endpoints });
    expect({ stage, does, requeueAfterMs }).toEqual({ stage: 'Stepping', does: [], requeueAfterMs: 1000 });
  });

  test.for([
    [
      'then they do',
      new Map([
        ['shop', stable],
        ['shop-canary', new Set(['shop-new-0'])],
      ]),
    ],
    [
      'and where nobody fills EndpointSlices',
      new Map([
        ['shop', new Set<string>()],
        ['shop-canary', new Set<string>()],
      ]),
    ],
  ] as const)('%s', ([, endpoints]) => {
    const { does } = decide(wish, { ...cluster, endpoints });
    expect(does).toHaveLength(1);
    expect(does[0]).toContain('patch HTTPRoute shop');
  });

  test('two seconds after that, however long its pods had been ready', () => {
    const comingUp = { ...wish, status: { ...wish.status, conditions: [] } };
    const before = new Map([
      ['shop', stable],
      ['shop-canary', new Set<string>()],
    ]);
    const after = new Map([...before, ['shop-canary', new Set(['shop-new-0'])]]);
    const backendRefs = [
      { name: 'shop', weight: 1 },
      { name: 'shop-canary', weight: 0 },
    ];
    const routes = [buildRoute([{ backendRefs }])];
    const decideAt = (endpoints: ClusterView['endpoints']) =>
      planJob(buildAtStage({ ...comingUp, cluster: buildCluster({ ...cluster, routes, endpoints }) }));
    expect(decideAt(before)).toEqual({ changes: [podsReady('Unknown')], requeueAfterMs: 1000 });
    expect(decideAt(after)).toEqual({ changes: [podsReady('True')], requeueAfterMs: 2000 });
  });
});

/** The change by which a job says so. */
function podsReady(status: 'Unknown' | 'True'): unknown {
  const conditions = expect.arrayContaining([expect.objectContaining({ type: 'PodsReady', status })]);
  return expect.objectContaining({ action: 'status', status: expect.objectContaining({ conditions }) });
}
