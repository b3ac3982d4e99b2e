import { finalizers } from '@rollcall/crds/kinds.ts';
import type { DeliveryJobStatus, DeliveryPolicySpec, DeliveryStrategy } from '@rollcall/crds/types.gen.ts';
import { expect, test } from 'vitest';
import type { Change } from '../../runtime/decision.ts';
import {
  buildAtStage,
  buildCluster,
  buildDeployment,
  buildExtra,
  buildJob,
  buildPods,
  buildPolicy,
  buildRoute,
  buildService,
  buildSnapshot,
  buildTemplate,
  NEW,
  OLD,
  pinnedTo,
  START,
  type StageWish,
  summarize,
} from '../testing/builders.ts';
import { planJob } from './plan.ts';
import type { JobSnapshot, SavedState, Surroundings } from './snapshot.ts';

const AT = new Date(START).toISOString();

const ahead = buildJob({ metadata: { name: 'first', uid: 'uid-first' } });
const DELETED = { deletionTimestamp: AT };

test.for<[string, Partial<JobSnapshot>, Partial<DeliveryJobStatus>]>([
  [
    'another runs',
    { queue: { ahead, before: 1, supersededBy: undefined } },
    { phase: 'Pending', stage: 'Queued', message: 'Waits for job first', strategy: 'Rolling' },
  ],
  [
    'it is its turn',
    {},
    {
      phase: 'Progressing',
      stage: 'Preparing',
      oldVersion: '1.0.0',
      oldArtifact: { type: 'image', url: OLD },
      previousRevision: 7,
      startedAt: AT,
    },
  ],
  [
    'aborted while it waits',
    { job: buildJob({ spec: { abort: true } }), queue: { ahead, before: 1, supersededBy: undefined } },
    { phase: 'RolledBack', reason: 'Cancelled', finishedAt: AT },
  ],
  ['deleted while it waits', { job: buildJob({ metadata: DELETED }) }, { phase: 'RolledBack', reason: 'Cancelled' }],
  ['superseded', { queue: { ahead, before: 1, supersededBy: ahead } }, { phase: 'RolledBack', reason: 'Superseded' }],
  ['no Deployment', { workload: { found: 'none' } }, { phase: 'Failed', reason: 'WorkloadNotFound' }],
  [
    'two Deployments',
    { workload: { found: 'many', names: ['a/x', 'b/y'] } },
    { phase: 'Failed', reason: 'WorkloadAmbiguous' },
  ],
  [
    'a forbidden one',
    { workload: { found: 'forbidden', namespace: 'x' } },
    { phase: 'Failed', reason: 'NamespaceNotAllowed' },
  ],
])('from the queue: %s', ([, overrides, expected]) => {
  const { changes } = planJob(buildSnapshot(overrides));
  const [write, ...others] = changes;
  expect(write).toMatchObject({ action: 'status', status: { observedGeneration: 1, ...expected } });
  expect(others.map(({ action }) => action)).toEqual(['event']);
});

test.for<[string, number, Partial<DeliveryJobStatus>, string]>([
  ['one', 1, {}, 'Waits for job first'],
  ['several', 3, {}, 'Waits for job first, and for 2 more'],
  [
    'one that is paused',
    1,
    { phase: 'Paused', message: '2 is ready' },
    'Waits for job first, which is paused (2 is ready)',
  ],
  ['very many', 11, {}, 'Waits for the jobs of shop that came before'],
])('a job that waits for others says which is the first: %s', ([, before, status, message]) => {
  const first = buildJob({ metadata: { name: 'first' }, status: { phase: 'Progressing', ...status } });
  const { changes } = planJob(buildSnapshot({ queue: { ahead: first, before, supersededBy: undefined } }));
  expect(changes[0]).toMatchObject({ status: { message } });
});

test('a job that waits and is known to wait writes nothing', () => {
  const queue = { ahead, before: 1, supersededBy: undefined };
  const [write] = planJob(buildSnapshot({ queue })).changes;
  const status = write?.action === 'status' ? (write.status as DeliveryJobStatus) : undefined;
  expect(status).toBeDefined();
  const known =
    status === undefined ? {} : { status: { ...status, conditions: status.conditions?.toReversed() ?? [] } };
  expect(planJob(buildSnapshot({ queue, job: buildJob(known) })).changes).toEqual([]);
});

test('a job that prepares while another has left the queue before it returns there, as if it had never left', () => {
  const queue = { ahead, before: 1, supersededBy: undefined };
  const preparing = { strategy: 'Rolling', stage: 'Preparing' } as const;
  const early = buildAtStage({ ...preparing, isClaimed: false, snapshot: { queue, saved: undefined } });
  const [write, ...others] = planJob(early).changes;
  expect(others.map(({ action }) => action)).toEqual(['event']);
  const { conditions, ...status } = (write?.action === 'status' ? write.status : {}) as DeliveryJobStatus;
  expect(conditions).toHaveLength(2);
  expect(status).toEqual({
    phase: 'Pending',
    stage: 'Queued',
    reason: 'Queued',
    message: 'Waits for job first',
    strategy: 'Rolling',
    stageStartedAt: AT,
    observedGeneration: 1,
  });
  // The claim goes after the status: whoever relies on it must not be able to begin any more.
  const late = buildAtStage({ ...preparing, snapshot: { queue } });
  expect(planJob(late).changes.map(({ action }) => action)).toEqual(['delete', 'status', 'event', 'patch']);
});

const service = buildService();

/** The Deployment is gone; a Service, and the extra Deployment where there is one, are not. */
function goneWith(extra: Surroundings['extra']): Pick<JobSnapshot, 'workload'> {
  const rest = { extraServices: new Map(), routes: undefined, endpoints: undefined };
  return { workload: { found: 'gone', surroundings: { extra, services: [service], ...rest } } };
}

test.for<[string, Parameters<typeof buildCluster>[0], Parameters<typeof buildJob>[0], string]>([
  [
    'Recreate',
    { deployment: buildDeployment({ spec: { strategy: { type: 'Recreate' } } }) },
    { spec: { strategy: 'Canary' } },
    'StrategyNotSupported',
  ],
  ['paused', { deployment: buildDeployment({ spec: { paused: true } }) }, {}, 'WorkloadPaused'],
  ['being deleted', { deployment: buildDeployment({ metadata: DELETED }) }, {}, 'WorkloadDeleted'],
  ['green is taken', { taken: ['Deployment shop-green'] }, { spec: { strategy: 'BlueGreen' } }, 'NameTaken'],
  [
    'a canary Service is taken',
    { taken: ['Service shop-canary'], routes: [buildRoute([{ backendRefs: [{ name: 'shop' }] }])] },
    { spec: { strategy: 'Canary' } },
    'NameTaken',
  ],
  ['a pin of the user', { services: [pinnedTo('x')] }, { spec: { strategy: 'Canary' } }, 'StrategyNotSupported'],
  [
    'a Service of others too',
    { shared: [{ service: 'shop', pod: 'cart-1' }] },
    { spec: { strategy: 'BlueGreen' } },
    'StrategyNotSupported',
  ],
  ['a pin of the user, by a rolling update', { services: [pinnedTo('old')] }, {}, 'StrategyNotSupported'],
  [
    'a binary without a path',
    {},
    { spec: { artifact: { type: 'binary', url: 'https://example.com/x', checksum: `sha256:${'a'.repeat(64)}` } } },
    'ArtifactNotSupported',
  ],
])('fails before anything is touched: %s', ([, cluster, job, reason]) => {
  const { changes } = planJob(buildSnapshot({ cluster: buildCluster(cluster), job: buildJob(job) }));
  expect(changes[0]).toMatchObject({ action: 'status', status: { phase: 'Failed', reason, failure: { reason } } });
  expect(changes).toHaveLength(2);
});

const digest = `shop@sha256:${'b'.repeat(64)}`;

test.for<[string, Parameters<typeof buildDeployment>[0], boolean]>([
  ['what runs is newer', { image: 'shop:2.0.0' }, false],
  ['it runs already', { image: 'shop:1.1.0' }, false],
  ['its annotation says newer', { metadata: { annotations: { 'rollcall.dev/version': '1.10.0' } } }, false],
  ['what runs is older', {}, true],
  ['without an order another one is newer', { image: 'shop:stable' }, true],
  ['its label says older', { image: digest, metadata: { labels: { 'app.kubernetes.io/version': '1.0' } } }, true],
  ['nobody knows what a digest is', { image: digest }, false],
  ['nobody knows what no tag is', { image: 'shop' }, false],
  ['nobody knows what latest is', { image: 'shop:latest' }, false],
])('a job that is to bring nothing but what is newer: %s', ([, wish, goesOn]) => {
  const ends = { phase: 'RolledBack', reason: 'NotNewer', failure: { reason: 'NotNewer' }, finishedAt: AT };
  const cluster = buildCluster({ deployment: buildDeployment(wish) });
  const [fromQueue] = planJob(buildSnapshot({ cluster, job: buildJob({ spec: { onlyIfNewer: true } }) })).changes;
  expect(fromQueue).toMatchObject({ status: goesOn ? { stage: 'Preparing' } : ends });
  // What runs may have changed by the time it has its claim.
  const late = planJob(preparing({ cluster, spec: { onlyIfNewer: true } })).changes;
  expect(late).toMatchObject(goesOn ? [{ action: 'create' }] : [{ status: ends }, { action: 'event' }]);
  const [asked] = planJob(buildSnapshot({ cluster, job: buildJob() })).changes;
  expect(asked).toMatchObject({ status: { stage: 'Preparing' } });
});

test('an automatic deploy that nobody knows to be newer says how it is deployed', () => {
  const cluster = buildCluster({ deployment: buildDeployment({ image: digest }) });
  const [write] = planJob(buildSnapshot({ cluster, job: buildJob({ spec: { onlyIfNewer: true } }) })).changes;
  const message =
    'Nothing says which version Deployment shop runs, so 1.1.0 may not be newer: deploy 1.1.0 by a call, or set the label app.kubernetes.io/version of the Deployment for later versions';
  expect(write).toMatchObject({ status: { message } });
});

test('a pin of the user is nothing to a job without anything to roll out', () => {
  const job = buildJob({ spec: { artifact: { type: 'image', url: OLD } } });
  const { changes } = planJob(buildSnapshot({ cluster: buildCluster({ services: [pinnedTo('old')] }), job }));
  expect(changes[0]).toMatchObject({ status: { stage: 'Preparing' } });
});

test('names that another strategy would use may be taken', () => {
  const cluster = buildCluster({ taken: ['Deployment shop-green', 'Service shop-canary'] });
  const { changes } = planJob(buildSnapshot({ cluster, job: buildJob({ spec: { strategy: 'Canary' } }) }));
  expect(changes[0]).toMatchObject({ status: { stage: 'Preparing' } });
});

test('a Service of others too is no obstacle to a rolling update', () => {
  const cluster = buildCluster({ shared: [{ service: 'shop', pod: 'cart-1' }] });
  const { changes } = planJob(buildSnapshot({ cluster, job: buildJob() }));
  expect(changes[0]).toMatchObject({ status: { stage: 'Preparing' } });
});

const preparing = (wish: Partial<StageWish> = {}) =>
  buildAtStage({
    strategy: 'BlueGreen',
    stage: 'Preparing',
    spec: { strategy: 'BlueGreen' },
    ...wish,
    snapshot: { saved: undefined, ...wish.snapshot },
  });

test('what an ended job has left goes before anything is saved', () => {
  const leftovers = [buildDeployment({ name: 'shop-green', replicas: 0 }), buildService('shop-canary')];
  const { changes } = planJob(preparing({ cluster: buildCluster({ leftovers }) }));
  expect(summarize({ changes }).does).toEqual(['delete Deployment shop-green', 'delete Service shop-canary']);
});

test('the finalizer comes first, then the record, then the strategy', () => {
  const unguarded = planJob(preparing({ metadata: { finalizers: [finalizers.history] } }));
  expect(summarize(unguarded).does).toEqual([
    `patch DeliveryJob deploy-shop {"metadata":{"finalizers":["${finalizers.history}","${finalizers.delivery}"]}}`,
  ]);
  const saving = planJob(preparing());
  expect(saving.changes).toMatchObject([
    {
      action: 'create',
      manifest: {
        kind: 'ControllerRevision',
        metadata: { name: 'deploy-shop', ownerReferences: [{ uid: 'uid-job' }] },
        data: {
          deployment: { template: buildTemplate(OLD), progressDeadlineSeconds: 300, version: null },
          services: [{ name: 'shop', selector: { app: 'shop' } }],
          target: buildTemplate(NEW),
          strategy: 'BlueGreen',
        },
      },
    },
  ]);
  const begun = planJob(buildAtStage({ strategy: 'BlueGreen', stage: 'Preparing' }));
  expect(begun.changes).toMatchObject([
    { action: 'status', status: { stage: 'Pinning', stableHash: 'old', strategy: 'BlueGreen' } },
    { action: 'patch', patch: { spec: { selector: { 'pod-template-hash': 'old' } } } },
  ]);
});

const strategyIn = (snapshot: JobSnapshot) => {
  const [write] = planJob(snapshot).changes;
  return write?.action === 'status' && 'strategy' in write.status ? write.status.strategy : undefined;
};

test("a job says which strategy it uses: its own, else the policy's, or Rolling where there is nothing to move", () => {
  expect(strategyIn(buildSnapshot({ policy: buildPolicy({ strategy: 'Canary' }) }))).toBe('Canary');
  const job = buildJob({ spec: { strategy: 'BlueGreen' } });
  expect(strategyIn(buildSnapshot({ job, policy: buildPolicy({ strategy: 'Canary' }) }))).toBe('BlueGreen');
  const idle = { strategy: 'Rolling', stage: 'Preparing', spec: { strategy: 'BlueGreen' } } as const;
  expect(strategyIn(buildAtStage(idle))).toBe('Rolling');
});

test.for<[string, Partial<StageWish>, string]>([
  [
    'without pods',
    {
      cluster: buildCluster({
        deployment: buildDeployment({ replicas: 0 }),
        replicaSets: [buildPods('old', 0, { current: true })],
      }),
    },
    'Rolling',
  ],
  ['without a difference', { spec: { strategy: 'BlueGreen', artifact: { type: 'image', url: OLD } } }, 'Rolling'],
  ['otherwise', {}, 'BlueGreen'],
])('the strategy %s', ([, wish, strategy]) => {
  expect(planJob(preparing(wish)).changes).toMatchObject([{ manifest: { data: { strategy } } }]);
});

const rolling = buildDeployment({ updated: 1 });
test.for<[string, Parameters<typeof buildCluster>[0]]>([
  ['a rollout is under way', { deployment: rolling }],
  ['another ReplicaSet has pods', { replicaSets: [buildPods('old', 3, { current: true }), buildPods('older', 1)] }],
])('blue-green waits for a stable Deployment, and gives up at the deadline: %s', ([, cluster]) => {
  const waiting = planJob(preparing({ cluster: buildCluster(cluster) }));
  expect(summarize(waiting).does).toEqual([]);
  expect(waiting.requeueAfterMs).toBe(599_000);
  const late = planJob(preparing({ cluster: buildCluster(cluster), seconds: 600 }));
  expect(summarize(late).status).toMatchObject({ phase: 'Failed', failure: { reason: 'WorkloadNotStable' } });
  const rolls = planJob(preparing({ cluster: buildCluster(cluster), spec: { strategy: 'Rolling' } }));
  expect(summarize(rolls).does).toEqual(['create ControllerRevision deploy-shop']);
});

const dead = buildCluster({
  deployment: buildDeployment({ ready: 0 }),
  replicaSets: [buildPods('old', 3, { current: true, ready: 0 })],
});

test('where nothing is ready there is nothing to protect: a rolling update at full speed, which says why', () => {
  const soon = planJob(preparing({ cluster: dead }));
  expect(soon.requeueAfterMs).toBe(4000);
  const { changes } = planJob(preparing({ cluster: dead, seconds: 5 }));
  const message = 'Rolling instead of BlueGreen, as 0 of 3 pods of Deployment shop are ready';
  const departure = { reason: 'WorkloadNotReady', message } as const;
  expect(changes).toMatchObject([
    {
      manifest: {
        data: { strategy: 'Rolling', services: [], departure, deployment: { short: { ready: 0, missing: 3 } } },
      },
    },
  ]);
  const saved = { departure };
  const begun = planJob(buildAtStage({ strategy: 'Rolling', stage: 'Preparing', cluster: dead, saved }));
  expect(begun.changes).toMatchObject([
    {
      action: 'status',
      status: {
        stage: 'Updating',
        strategy: 'Rolling',
        message: `Deployment shop rolls out 1.1.0 (${message})`,
        conditions: expect.arrayContaining([
          expect.objectContaining({ type: 'AsRequested', status: 'False', ...departure }),
        ]),
      },
    },
    { action: 'event', ...departure },
    { action: 'patch', patch: { spec: { strategy: { rollingUpdate: { maxSurge: '100%', maxUnavailable: 0 } } } } },
  ]);
  const ended = planJob(
    buildAtStage({
      strategy: 'Rolling',
      stage: 'Finishing',
      isClaimed: false,
      saved,
      status: begunWith(begun.changes),
    }),
  );
  expect(ended.changes).toMatchObject([
    {
      status: {
        phase: 'Succeeded',
        message: `1.1.0 was delivered (${message})`,
        conditions: expect.arrayContaining([expect.objectContaining({ type: 'AsRequested' })]),
      },
    },
    {},
  ]);
});

/** The conditions of the status that was written. */
function begunWith([write]: readonly Change[]): Pick<DeliveryJobStatus, 'conditions'> {
  const { conditions } = (write?.action === 'status' ? write.status : {}) as DeliveryJobStatus;
  return conditions === undefined ? {} : { conditions };
}

test.for<[string, Partial<DeliveryPolicySpec['canary']>, ReturnType<typeof buildRoute>[] | undefined, string]>([
  ['no such API', {}, undefined, 'GatewayAPIMissing'],
  ['no route to the service', {}, [buildRoute([{ backendRefs: [{ name: 'other' }] }])], 'NoMatchingRoute'],
  ['a route', {}, [buildRoute([{ backendRefs: [{ name: 'shop' }] }])], ''],
  ['nobody asked for it', { trafficRouter: 'Replicas' }, undefined, ''],
])('weights that routes cannot make are made by replicas, and it is reported: %s', ([, canary, routes, reason]) => {
  const policy = buildPolicy({ canary: { steps: [{ weight: 50 }], trafficRouter: 'GatewayAPI', ...canary } });
  const wish = { cluster: buildCluster({ routes }), spec: { strategy: 'Canary' }, snapshot: { policy } } as const;
  const [created] = planJob(preparing(wish)).changes;
  const { data } = (created?.action === 'create' ? created.manifest : {}) as { data?: SavedState };
  expect(data?.strategy).toBe('Canary');
  expect(data?.departure?.reason ?? '').toBe(reason);
});

test.for<[string, Partial<StageWish>, string, string]>([
  ['aborted', { spec: { abort: true } }, 'RolledBack', 'Cancelled'],
  ['deleted', { metadata: DELETED }, 'RolledBack', 'Cancelled'],
  [
    'the template has changed since it was saved',
    { cluster: buildCluster({ deployment: buildDeployment({ image: 'x:1' }) }), snapshot: {} },
    'Failed',
    'ChangedFromOutside',
  ],
])('while it prepares, a job just ends: %s', ([, wish, phase, reason]) => {
  const decision = planJob(buildAtStage({ strategy: 'BlueGreen', stage: 'Preparing', ...wish }));
  expect(summarize(decision)).toMatchObject({ status: { phase, failure: { reason } }, does: [] });
});

/** Every stage that goes forward. */
const forward = [
  'Updating',
  'Verifying',
  'Pinning',
  'BringingUp',
  'Testing',
  'Gate',
  'CuttingOver',
  'Baking',
  'Draining',
  'UpdatingWorkload',
  'HandingBack',
  'DrainingExtra',
  'RemovingExtra',
  'Finishing',
];
const pull = { reason: 'ImagePullFailed', message: 'no such image' } as const;

test.for(forward)('at %s, whatever ends a job ends it', (stage) => {
  const strategy = stage === 'Updating' || stage === 'Verifying' ? 'Rolling' : 'BlueGreen';
  const reasonOf = (wish: Partial<StageWish>) => summarize(planJob(buildAtStage({ strategy, stage, ...wish }))).status;
  expect(reasonOf({ spec: { abort: true } })).toMatchObject({
    phase: 'RollingBack',
    stage: 'Reverting',
    failure: { reason: 'Aborted' },
  });
  expect(reasonOf({ metadata: DELETED })).toMatchObject({ failure: { reason: 'JobDeleted' } });
  const foreign = buildCluster({ deployment: buildDeployment({ image: 'x:1' }) });
  expect(reasonOf({ cluster: foreign })).toMatchObject({ failure: { reason: 'ChangedFromOutside' } });
  const paused = buildCluster({ deployment: buildDeployment({ spec: { paused: true } }) });
  expect(reasonOf({ cluster: paused })).toMatchObject({ failure: { reason: 'WorkloadPaused' } });
  expect(reasonOf({ snapshot: goneWith(undefined) })).toMatchObject({ failure: { reason: 'WorkloadDeleted' } });
  expect(reasonOf({ snapshot: { saved: undefined } })).toMatchObject({ failure: { reason: 'SavedStateLost' } });
  const undone = { templateFingerprint: 'that of the new version' };
  expect(reasonOf({ status: undone })).toMatchObject({ failure: { reason: 'ChangedFromOutside' } });
  if (strategy === 'Rolling' || ['DrainingExtra', 'RemovingExtra', 'Finishing'].includes(stage)) return;
  const faulty = buildCluster({ extra: buildExtra(3, { ready: 2, fault: pull }), services: [pinnedTo('old')] });
  expect(reasonOf({ cluster: faulty })).toMatchObject({ failure: pull });
});

test.for(['ChangedFromOutside', 'RollbackIncomplete', 'Aborted'])(
  'that the Deployment is gone explains what was noticed before: %s',
  (reason) => {
    const status = { weight: 20, actualWeight: 20, extraReplicas: 1, failure: { reason, message: 'm' } };
    const at = (stage: string) => buildAtStage({ strategy: 'Canary', stage, status, snapshot: goneWith(undefined) });
    const failure = { reason: 'WorkloadDeleted', message: 'Deployment shop was deleted during the job' };
    expect(planJob(at('Restoring')).changes[0]).toMatchObject({ status: { failure, actualWeight: 0 } });
    const end = { phase: 'Failed', reason: 'WorkloadDeleted', failure, actualWeight: 0 };
    expect(planJob(at('Finishing')).changes[0]).toMatchObject({ status: end });
  },
);

test.for<[DeliveryStrategy, number]>([
  ['Rolling', 0],
  ['BlueGreen', 100],
  ['Canary', 20],
])('a job whose Deployment is gone has no traffic: %s', ([strategy, weight]) => {
  const failure = { reason: 'WorkloadDeleted', message: 'm' };
  const status = { weight, actualWeight: weight, failure };
  const ended = buildAtStage({ strategy, stage: 'Finishing', status, snapshot: goneWith(undefined) });
  expect(planJob(ended).changes[0]).toMatchObject({ status: { phase: 'Failed', actualWeight: 0 } });
});

test('as long as the pods of the new version are there they have what traffic there is', () => {
  const failure = { reason: 'WorkloadDeleted', message: 'm' };
  const status = { weight: 20, actualWeight: 20, extraReplicas: 1, failure };
  const snapshot = goneWith(buildExtra(1));
  const drained = buildAtStage({ strategy: 'Canary', stage: 'DrainingExtra', status, snapshot });
  expect(planJob(drained).changes[0]).toMatchObject({ status: { actualWeight: 100 } });
});

test.for<[string, string, boolean]>([
  ['BlueGreen', 'Pinning', true],
  ['BlueGreen', 'BringingUp', true],
  ['BlueGreen', 'Testing', true],
  ['BlueGreen', 'Gate', true],
  ['Canary', 'Routing', true],
  ['Canary', 'Stepping', true],
  ['Canary', 'StepVerifying', true],
  ['Canary', 'StepPausing', true],
  ['Canary', 'FullUp', true],
  ['BlueGreen', 'Baking', false],
  ['Rolling', 'Updating', false],
])('%s at %s: a Service that comes during the job', ([strategy, stage, isEnded]) => {
  const services = [buildService(), buildService('late')];
  const wish = { strategy: strategy as DeliveryStrategy, stage, status: { step: 0 } };
  const reasonOf = (cluster: Parameters<typeof buildCluster>[0]) =>
    summarize(planJob(buildAtStage({ ...wish, cluster: buildCluster(cluster) }))).status.failure?.message ?? '';
  expect(reasonOf({ services }).includes('Service late')).toBe(isEnded);
  const going = { ...buildService('late'), metadata: { name: 'late', ...DELETED } };
  expect(reasonOf({ services: [buildService(), going] })).not.toContain('Service late');
});

test("faults of the new pods in the user's Deployment end a job at once, those of the old ones do not", () => {
  const updated = buildDeployment({ image: NEW, updated: 1, reason: 'ReplicaSetUpdated' });
  const replicaSets = [buildPods('old', 3), buildPods('new', 1, { current: true, ready: 0, fault: pull })];
  const wish = { strategy: 'Rolling', stage: 'Updating' } as const;
  const faulty = planJob(buildAtStage({ ...wish, cluster: buildCluster({ deployment: updated, replicaSets }) }));
  expect(summarize(faulty).status).toMatchObject({ stage: 'Reverting', failure: pull });
  const old = [buildPods('old', 3, { ready: 2, fault: pull }), buildPods('new', 1, { current: true })];
  const going = planJob(buildAtStage({ ...wish, cluster: buildCluster({ deployment: updated, replicaSets: old }) }));
  expect(summarize(going).status.failure).toBeUndefined();
});

test('a promote is cleared once it was acted on, and never with a status write', () => {
  const wish: StageWish = {
    strategy: 'BlueGreen',
    stage: 'Gate',
    spec: { promote: true },
    cluster: buildCluster({ services: [pinnedTo('old')], extra: buildExtra(3) }),
    status: { extraReplicas: 3 },
  };
  const acted = summarize(planJob(buildAtStage(wish)));
  expect(acted.status.stage).toBe('CuttingOver');
  expect(acted.does.filter((text) => text.includes('DeliveryJob'))).toEqual([]);
  const used = planJob(buildAtStage({ ...wish, status: { ...wish.status, promotedGeneration: 1 } }));
  expect(summarize(used).status.stage).not.toBe('CuttingOver');
});

test('an ended job loses what is left of it, then the finalizer, and is left alone', () => {
  const status: DeliveryJobStatus = { phase: 'RolledBack', stage: 'RolledBack' };
  const at = (overrides: Parameters<typeof buildCluster>[0], job = buildJob({ status })) =>
    summarize(planJob(buildSnapshot({ job, cluster: buildCluster(overrides) }))).does;
  expect(at({ extra: buildExtra(3) })).toEqual(['patch Deployment shop-green {"spec":{"replicas":0}}']);
  expect(at({ extra: buildExtra(0) })).toEqual(['delete Deployment shop-green']);
  expect(at({ extraServices: new Map([['shop', buildService('shop-canary')]]) })).toEqual([
    'delete Service shop-canary',
  ]);
  expect(at({})).toEqual([`patch DeliveryJob deploy-shop {"metadata":{"finalizers":["${finalizers.history}"]}}`]);
  expect(at({ extra: buildExtra(3) }, buildJob({ status, metadata: { finalizers: [] } }))).toEqual([]);
  // As long as the Deployment has too few pods of its own.
  expect(at({ extra: buildExtra(3), replicaSets: [buildPods('old', 3, { current: true, ready: 1 })] })).toEqual([]);
});

test.for<[string, Partial<JobSnapshot>, string, string[]]>([
  ['what could not be handed back is tried again', {}, 'NotHandedBack', ['Service shop']],
  ['also without a record', { saved: undefined }, 'RollbackIncomplete', ['Service shop']],
  [
    'but not while another job runs, whose it may be',
    { queue: { ahead, before: 1, supersededBy: undefined } },
    'NotHandedBack',
    [],
  ],
  ['and not by a job that had handed back everything', {}, 'Aborted', []],
])('of an ended job, %s', ([, snapshot, reason, expected]) => {
  const cluster = buildCluster({ services: [pinnedTo('new')], extra: buildExtra(3) });
  const status = { phase: 'Failed', failure: { reason, message: 'm' } } as const;
  const wish = { strategy: 'BlueGreen', stage: 'Failed', cluster, status, snapshot } as const;
  const { changes } = planJob(buildAtStage({ ...wish, isClaimed: reason !== 'Aborted' }));
  const patches = changes.flatMap((change) => (change.action === 'patch' ? [change] : []));
  const released = patches.filter(({ patch }) => !JSON.stringify(patch).includes('"replicas":0'));
  expect(released.map(({ kind, object }) => `${kind.kind} ${object.metadata.name}`)).toEqual(expected);
  // Extra pods stay as long as a Service leads to them.
  expect(patches).toHaveLength(expected.length);
});

test.for<[string, Partial<StageWish>]>([
  ['the finalizer', { metadata: { finalizers: [finalizers.history] } }],
  ['the record', {}],
])('a job whose %s is refused gives up at the deadline', ([, wish]) => {
  expect(summarize(planJob(preparing({ ...wish, seconds: 599 }))).does).toHaveLength(1);
  const late = summarize(planJob(preparing({ ...wish, seconds: 600 })));
  expect(late).toMatchObject({
    status: { phase: 'Failed', failure: { reason: 'ProgressDeadlineExceeded' } },
    does: [],
  });
});

test('a fixed policy: what was saved counts, not what is there now', () => {
  const snapshot = buildAtStage({
    strategy: 'BlueGreen',
    stage: 'Draining',
    seconds: 29,
    cluster: buildCluster({ services: [pinnedTo('new')], extra: buildExtra(3) }),
    status: { extraReplicas: 3, weight: 100 },
  });
  const { requeueAfterMs } = planJob({ ...snapshot, policy: buildPolicy({ drainSeconds: 0 }) });
  expect(requeueAfterMs).toBe(1000);
});
