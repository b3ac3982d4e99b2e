import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { type Deployment, type Pod, type Service, serviceKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection, KubeRequest } from '@rollcall/platform/kube/connection.ts';
import { KubeApiError } from '@rollcall/platform/kube/errors.ts';
import { createInformer } from '@rollcall/platform/kube/informer.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { expect, test } from 'vitest';
import { buildDeployment, buildJob, buildService } from '../testing/builders.ts';
import { createDirectReads } from './direct-reads.ts';
import { createIndexes } from './indexes.ts';
import { createDeliveryInformers } from './informers.ts';
import { createObstacleObserver } from './obstacles.ts';
import type { DigestedReplicaSet } from './trim-workloads.ts';

const deployment = buildDeployment();
const service = buildService('shop', { app: 'shop', 'pod-template-hash': 'h1' });
const job = buildJob();

function meta(name: string): Deployment['metadata'] {
  return { name, namespace: 'default', uid: `uid-${name}`, resourceVersion: '1' };
}

const ownedBy = (kind: string, name: string) => ({
  ownerReferences: [{ apiVersion: 'apps/v1', kind, name, uid: `uid-${name}`, controller: true }],
});

function replicaSet(name: string, owner: string): DigestedReplicaSet {
  const metadata = { ...meta(name), ...ownedBy('Deployment', owner) };
  return { apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata, spec: { replicas: 1 } };
}

function pod(name: string, rest: Partial<Pod['metadata']> = {}): Pod {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { ...meta(name), ...rest }, status: { phase: 'Running' } };
}

function ended(uid: string): DeliveryJob {
  return buildJob({ metadata: { name: uid, uid }, status: { phase: 'Failed', stage: 'Failed' } });
}

function extra(uid: string, replicas: number): Deployment {
  return buildDeployment({ name: 'shop-green', replicas, metadata: { labels: { 'rollcall.dev/job': uid } } });
}

const refuse = () => Promise.reject(new Error('not expected'));

interface Cluster {
  readonly pods?: readonly Pod[];
  readonly extra?: Deployment;
  readonly jobs?: readonly DeliveryJob[];
  readonly services?: readonly Service[];
  /** The job `b`, as the API server has it. */
  readonly stored?: DeliveryJob;
}

/** An API server that has these, and copies that follow it. */
function setUp({ pods = [], extra, jobs = [], services = [], stored }: Cluster) {
  const requests: string[] = [];
  async function answer({ path, query }: KubeRequest): Promise<unknown> {
    requests.push(`${path.split('/').slice(-2).join('/')} ${String(query?.['labelSelector'] ?? '')}`.trim());
    if (path.endsWith('/pods')) return { items: pods };
    if (extra !== undefined && path.endsWith(`/deployments/${extra.metadata.name}`)) return extra;
    if (stored !== undefined && path.endsWith('/deliveryjobs/b')) return stored;
    throw new KubeApiError(404, { code: 404, reason: 'NotFound', message: 'not there' });
  }
  const connection: KubeConnection = {
    namespace: 'rollcall',
    request: <T>(request: KubeRequest) => answer(request) as Promise<T>,
    stream: refuse,
    close: refuse,
  };
  const common = { connection, clock: systemClock, log: createLogger('test', 'silent') };
  const followed = createInformer<Service>({ ...common, kind: serviceKind });
  const informers = createDeliveryInformers({
    ...common,
    namespace: 'default',
    namespaces: [],
    services: [followed],
  });
  const indexes = createIndexes(informers);
  for (const set of [replicaSet('shop-h1', 'shop'), replicaSet('cart-h1', 'cart')]) {
    for (const informer of informers.replicaSets) informer.recordWrite(set);
  }
  for (const made of jobs) informers.jobs.recordWrite(made);
  for (const made of services) followed.recordWrite(made);
  let nowMs = 0;
  const clock = { monotonicMs: () => nowMs };
  const observe = createObstacleObserver({ indexes, reads: createDirectReads(connection), clock });
  return {
    requests,
    pass: (ms: number) => {
      nowMs += ms;
    },
    observe: (strategy: 'Rolling' | 'BlueGreen' = 'BlueGreen', of = deployment) =>
      observe({ job, saved: undefined, indexes }, { deployment: of, services: [service], strategy }),
  };
}

test.for<[string, Pod, boolean]>([
  ['of the Deployment', pod('shop-1', ownedBy('ReplicaSet', 'shop-h1')), false],
  ['of another Deployment', pod('cart-1', ownedBy('ReplicaSet', 'cart-h1')), true],
  ['of a StatefulSet', pod('db-0', ownedBy('StatefulSet', 'db')), true],
  ['of nobody', pod('alone'), true],
  ['of a ReplicaSet that is not known yet', pod('shop-2', ownedBy('ReplicaSet', 'shop-h2')), false],
  ['of a job', pod('green-1', { ...ownedBy('ReplicaSet', 'x'), labels: { 'rollcall.dev/job': 'uid-job' } }), false],
  ['of others, and about to go', pod('gone', { deletionTimestamp: '2026-01-01T00:00:00Z' }), false],
])('a Service is shared when it selects a pod %s', async ([, selected, isShared]) => {
  const { observe, requests } = setUp({ pods: [selected] });
  const { shared } = await observe();
  expect(shared).toEqual(isShared ? [{ service: 'shop', pod: selected.metadata.name }] : []);
  expect(requests).toContain('default/pods app=shop');
});

test('nobody asks about pods for a rolling update, which pins no Service', async () => {
  const { observe, requests } = setUp({ pods: [pod('alone')] });
  expect((await observe('Rolling')).shared).toEqual([]);
  expect(requests.filter((request) => request.includes('pods'))).toEqual([]);
});

const running = buildJob({
  metadata: { name: 'b', uid: 'uid-b' },
  status: { phase: 'Progressing', stage: 'Stepping' },
});
test.for<[string, Cluster, 'taken' | 'left']>([
  ["the user's own", { extra: buildDeployment({ name: 'shop-green', replicas: 0 }) }, 'taken'],
  ['of a job that runs', { extra: extra('uid-b', 0), jobs: [running] }, 'taken'],
  ['of a job that has ended, with pods', { extra: extra('uid-a', 1), jobs: [ended('uid-a')] }, 'taken'],
  ['of a job that has ended, empty', { extra: extra('uid-a', 0), jobs: [ended('uid-a')] }, 'left'],
  ['of a job that is gone, empty', { extra: extra('uid-a', 0) }, 'left'],
])('a Deployment of the name is there: %s', async ([, cluster, expected]) => {
  const { taken, leftovers } = await setUp(cluster).observe();
  expect(taken).toEqual(expected === 'taken' ? ['Deployment shop-green'] : []);
  expect(leftovers.map(({ metadata }) => metadata.name)).toEqual(expected === 'left' ? ['shop-green'] : []);
});

test('a canary Service of a job that is gone is left over, and one of a user is taken', async () => {
  const canary = buildService('shop-canary');
  const made = { ...canary, metadata: { ...canary.metadata, labels: { 'rollcall.dev/job': 'uid-a' } } };
  expect((await setUp({ services: [made] }).observe()).leftovers).toHaveLength(1);
  expect((await setUp({ services: [canary] }).observe()).taken).toEqual(['Service shop-canary']);
});

const CLAIM = 'default/b/uid-b/2026-01-01T00:00:00Z';
const claimed = {
  ...deployment,
  metadata: { ...deployment.metadata, annotations: { 'rollcall.dev/delivering': CLAIM } },
};
const at = (phase: 'Pending' | 'Progressing' | 'Failed', startedAt = '2026-01-01T00:00:00Z') =>
  buildJob({ metadata: { name: 'b', uid: 'uid-b' }, status: { phase, startedAt } });

test.for<[string, Cluster, boolean]>([
  ['that runs', { jobs: [at('Progressing')], stored: at('Progressing') }, false],
  ['that has ended', { jobs: [at('Failed')], stored: at('Failed') }, true],
  ['that has ended, by what the API server says', { jobs: [at('Progressing')], stored: at('Failed') }, true],
  ['that has not begun, by a copy that is behind', { jobs: [at('Pending')], stored: at('Progressing') }, false],
  ['that nobody has heard of, by a copy that is behind', { stored: at('Progressing') }, false],
  ['that is gone', {}, true],
  ['that is another one of that name', { stored: buildJob({ metadata: { name: 'b', uid: 'uid-c' } }) }, true],
  ['that has returned to the queue', { stored: buildJob({ metadata: { name: 'b', uid: 'uid-b' } }) }, true],
  ['that has left the queue anew', { stored: at('Progressing', '2026-01-01T00:00:09Z') }, true],
])('a claim is of a job %s', async ([, cluster, isAbandoned]) => {
  const { abandonedClaim } = await setUp(cluster).observe('BlueGreen', claimed);
  expect(abandonedClaim).toBe(isAbandoned ? CLAIM : undefined);
});

test('a claim of a job of another namespace stands: nobody can ask about it', async () => {
  const { observe, requests } = setUp({});
  const metadata = { ...deployment.metadata, annotations: { 'rollcall.dev/delivering': 'elsewhere/b/uid-b/x' } };
  expect((await observe('BlueGreen', { ...deployment, metadata })).abandonedClaim).toBeUndefined();
  expect(requests.filter((request) => request.includes('deliveryjobs'))).toEqual([]);
});

test('many observations at once read once; what is about to go is read again', async () => {
  const calm = setUp({});
  await Promise.all([calm.observe(), calm.observe()]);
  const once = calm.requests.length;
  calm.pass(500);
  await calm.observe();
  expect(calm.requests).toHaveLength(once);
  calm.pass(500);
  await calm.observe();
  expect(calm.requests).toHaveLength(2 * once);

  const left = setUp({ extra: extra('uid-a', 0) });
  await left.observe();
  await left.observe();
  expect(left.requests).toHaveLength(2 * once);
});
