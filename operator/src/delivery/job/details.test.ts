import type { DeliveryJobStatus } from '@rollcall/crds/types.gen.ts';
import { expect, test } from 'vitest';
import {
  buildAtStage,
  buildCluster,
  buildDeployment,
  buildExtra,
  buildJob,
  buildPods,
  buildPolicy,
  buildSnapshot,
  NEW,
  pinnedTo,
  type StageWish,
} from '../testing/builders.ts';
import { planJob } from './plan.ts';
import type { ClusterView, JobSnapshot, PodWait, Refusal } from './snapshot.ts';

function statusOf(snapshot: JobSnapshot): Partial<DeliveryJobStatus> {
  const written = planJob(snapshot).changes.find(({ action }) => action === 'status');
  return written?.action === 'status' ? written.status : {};
}

const refused: Refusal = { isInvalid: false, message: 'refuses to patch Deployment shop: exceeded quota' };
const rejected: Refusal = { isInvalid: true, message: 'refuses to patch Deployment shop: must be unique' };

test.for<[string, StageWish, string]>([
  ['a rolling update', { strategy: 'Rolling', stage: 'Updating' }, 'Deployment shop rolls out 1.1.0'],
  ['the pins', { strategy: 'BlueGreen', stage: 'Pinning' }, 'Pins the traffic to the pods that run'],
  [
    'green pods',
    { strategy: 'BlueGreen', stage: 'BringingUp', cluster: buildCluster({ services: [pinnedTo('old')] }) },
    'Waits for 3 pods of 1.1.0 to become ready',
  ],
  ['a canary', { strategy: 'Canary', stage: 'Stepping', status: { step: 0 } }, 'Brings 1.1.0 to 25 % of the traffic'],
])('what is refused stands in the message from the first time on: %s', ([, wish, message]) => {
  const snapshot = buildAtStage({ ...wish, snapshot: { refusal: refused } });
  expect(statusOf(snapshot)).toMatchObject({ phase: 'Progressing', message: `${message} (${refused.message})` });
});

test.for(['Updating', 'Pinning', 'BringingUp', 'Stepping', 'CuttingOver', 'UpdatingWorkload'])(
  'what is rejected for good rolls a job back at once: %s',
  (stage) => {
    const strategy = stage === 'Updating' ? 'Rolling' : stage === 'Stepping' ? 'Canary' : 'BlueGreen';
    const status = { step: 0, ...(stage === 'UpdatingWorkload' ? { extraReplicas: 3 } : {}) };
    const cluster = buildCluster(
      stage === 'UpdatingWorkload' ? { services: [pinnedTo('new')], extra: buildExtra(3) } : {},
    );
    const snapshot = buildAtStage({ strategy, stage, status, cluster, snapshot: { refusal: rejected } });
    const failure = { reason: 'ChangeRejected', message: rejected.message };
    expect(statusOf(snapshot)).toMatchObject({ phase: 'RollingBack', message: rejected.message, failure });
  },
);

test.for<[Refusal, Partial<DeliveryJobStatus>]>([
  [refused, { phase: 'Progressing', stage: 'Preparing', message: `Prepares (${refused.message})` }],
  [rejected, { phase: 'Failed', reason: 'ChangeRejected', message: rejected.message }],
])('a job that cannot be prepared says so: %o', ([refusal, status]) => {
  const known = { phase: 'Progressing', stage: 'Preparing', startedAt: '2026-11-21T12:00:00.000Z' } as const;
  const job = buildJob({ metadata: { finalizers: [] }, status: known });
  expect(statusOf(buildSnapshot({ job, refusal }))).toMatchObject(status);
});

test('a job that is handed back is not undone for what is rejected then', () => {
  const snapshot = buildAtStage({ strategy: 'Rolling', stage: 'Finishing', snapshot: { refusal: rejected } });
  expect(statusOf(snapshot).failure).toBeUndefined();
});

const unschedulable: PodWait = { isUsual: false, message: 'Pod shop-new-0: Unschedulable: 0/3 nodes' };
const creating: PodWait = { isUsual: true, message: 'Pod shop-new-0: container shop is being created' };

function bringUp(waits: PodWait, seconds: number, deadline = 600): JobSnapshot {
  const extra = buildExtra(3, { ready: 2 });
  const pods = { ...extra.pods, pods: extra.pods.pods.map((pod) => (pod.ready ? pod : { ...pod, waits })) };
  const cluster = buildCluster({ services: [pinnedTo('old')], extra: { ...extra, pods } });
  const { rolling } = buildPolicy();
  const policy = { rolling: { ...rolling, progressDeadlineSeconds: deadline } };
  return buildAtStage({
    strategy: 'BlueGreen',
    stage: 'BringingUp',
    seconds,
    cluster,
    policy,
    status: { extraReplicas: 3 },
  });
}

test.for<[string, PodWait, number, string]>([
  ['at once, what is no matter of time', unschedulable, 1, ` (${unschedulable.message})`],
  ['not what every pod waits for', creating, 1, ''],
  ['but after a while', creating, 11, ` (${creating.message})`],
])('why pods are not ready stands in the message: %s', ([, waits, seconds, details]) => {
  const { message } = statusOf(bringUp(waits, seconds));
  expect(message).toBe(`Waits for 3 pods of 1.1.0 to become ready${details}`);
});

test('and in the failure at the deadline', () => {
  expect(statusOf(bringUp(unschedulable, 11, 10)).failure).toEqual({
    reason: 'ProgressDeadlineExceeded',
    message: `After 10 s without progress: Waits for 3 pods of 1.1.0 to become ready (${unschedulable.message})`,
  });
});

const underWay = { updated: 1, reason: 'ReplicaSetUpdated' } as const;
const pending = (waits: PodWait) => {
  const next = buildPods('next', 1, { current: true, ready: 0 });
  return [{ ...next, pods: next.pods.map((pod) => ({ ...pod, waits })) }, buildPods('old', 3)];
};

test.for<[string, number, Partial<ClusterView>, string]>([
  ['a pod that fits nowhere', 1, { replicaSets: pending(unschedulable) }, ` (${unschedulable.message})`],
  ['not what every pod waits for', 1, { replicaSets: pending(creating) }, ''],
  ['but after a while', 11, { replicaSets: pending(creating) }, ` (${creating.message})`],
  [
    'a quota',
    1,
    {
      deployment: buildDeployment({ ...underWay, complaint: 'exceeded quota: q' }),
      replicaSets: [buildPods('next', 0, { current: true }), buildPods('old', 3)],
    },
    ' (exceeded quota: q)',
  ],
])('why a Deployment does not become stable stands in the message: %s', ([, seconds, view, details]) => {
  const cluster = buildCluster({ deployment: buildDeployment(underWay), ...view });
  const at = (waited: number) =>
    statusOf(
      buildAtStage({
        strategy: 'BlueGreen',
        stage: 'Preparing',
        seconds: waited,
        cluster,
        spec: { strategy: 'BlueGreen' },
        snapshot: { saved: undefined },
      }),
    );
  expect(at(seconds).message).toBe(`Waits for a stable Deployment: Deployment shop has a rollout under way${details}`);
  const { reason, message } = at(600).failure ?? {};
  expect(reason).toBe('WorkloadNotStable');
  expect(message).toContain(`Deployment shop has a rollout under way, after 600 s${details}`);
});

test('a quota that keeps pods from coming up is reported at once', () => {
  const deployment = buildDeployment({ ...underWay, image: NEW, ready: 2, complaint: 'exceeded quota: q' });
  const cluster = buildCluster({ deployment, replicaSets: [buildPods('new', 1, { current: true })] });
  const snapshot = buildAtStage({ strategy: 'Rolling', stage: 'Updating', cluster });
  expect(statusOf(snapshot).message).toBe('Deployment shop rolls out 1.1.0 (exceeded quota: q)');
});

const otherNamespace = '; if it is in another namespace, add that to delivery.namespaces of the chart';

test.for<[string, string]>([
  ['shop', `No Deployment is labelled as the service shop: label it rollcall.dev/service=shop${otherNamespace}`],
  [
    'größe',
    `No Deployment runs the service größe, a name that can be no label: label it rollcall.dev/service=true, and annotate it rollcall.dev/service-name='größe'${otherNamespace}`,
  ],
])('a service without a Deployment, %s, is described with how it gets one', ([serviceName, message]) => {
  const job = buildJob({ spec: { serviceName } });
  expect(statusOf(buildSnapshot({ job, workload: { found: 'none' } })).message).toBe(message);
});

test('without a Service blue-green is refused, with nothing touched', () => {
  const job = buildJob({ spec: { strategy: 'BlueGreen' } });
  const status = statusOf(buildSnapshot({ job, cluster: buildCluster({ services: [] }) }));
  expect(status).toMatchObject({ phase: 'Failed', reason: 'StrategyNotSupported' });
  expect(status.message).toContain('No Service leads to the pods of Deployment shop');
});

test('without a Service a canary has a share of the pods, says so, and never claims all traffic', () => {
  const status = { step: 2, extraReplicas: 3, weight: 50 };
  const cluster = buildCluster({ services: [], extra: buildExtra(3) });
  const saved = { services: [] };
  const next = statusOf(buildAtStage({ strategy: 'Canary', stage: 'FullUp', status, cluster, saved }));
  expect(next).toMatchObject({ stage: 'UpdatingWorkload', actualWeight: 50 });
});

const shares = 'Weights are shares of the pods, as no Service leads to the pods of Deployment shop';
const nothing = 'No traffic is switched, as no Service leads to the pods of Deployment shop';
const paused = { step: 1, extraReplicas: 3, weight: 50 };

test.for<[string, StageWish, string]>([
  [
    'at a pause',
    { strategy: 'Canary', stage: 'StepPausing', status: paused },
    `1.1.0 has 50 % of the traffic; waits for promote (${shares})`,
  ],
  [
    'while the old pods are drained',
    { strategy: 'BlueGreen', stage: 'Draining', status: { extraReplicas: 3, weight: 100 } },
    `The old pods are kept for 30 s (${nothing})`,
  ],
])('a Service that is deleted during a job has no traffic any more: %s', ([, wish, message]) => {
  const departure = { type: 'AsRequested', reason: 'NoService' };
  const without = buildAtStage({ ...wish, cluster: buildCluster({ services: [], extra: buildExtra(3) }) });
  expect(statusOf(without)).toMatchObject({
    message,
    conditions: expect.arrayContaining([expect.objectContaining(departure)]),
  });
  expect(planJob(without).changes).toMatchObject(
    expect.arrayContaining([expect.objectContaining({ action: 'event', reason: 'NoService' })]),
  );
});

test('a Service that comes back has its traffic again', () => {
  const cluster = buildCluster({ extra: buildExtra(3) });
  const conditions = [
    { type: 'AsRequested', status: 'False', reason: 'NoService', message: shares, lastTransitionTime: '' },
  ] as const;
  const status = { ...paused, conditions: [...conditions] };
  expect(statusOf(buildAtStage({ strategy: 'Canary', stage: 'StepPausing', status, cluster })).message).toBe(
    '1.1.0 has 50 % of the traffic; waits for promote',
  );
});

test('a canary whose Service was deleted goes on without the stages that only move traffic', () => {
  const status = { step: 2, extraReplicas: 3, weight: 50 };
  const cluster = buildCluster({ services: [], extra: buildExtra(3) });
  const next = statusOf(buildAtStage({ strategy: 'Canary', stage: 'FullUp', status, cluster }));
  expect(next).toMatchObject({ stage: 'UpdatingWorkload', actualWeight: 50 });
});
