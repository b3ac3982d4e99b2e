import { serviceRegistrationKind } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob, DeliveryJobStatus, DeliveryPolicy, ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import {
  type Deployment,
  type Lease,
  leaseKind,
  type Pod,
  type Service,
  serviceKind,
} from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { createInformer } from '@rollcall/platform/kube/informer.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { beforeEach, expect, test } from 'vitest';
import { policyFor } from '../start/default-policy.ts';
import { buildClusterView, buildSurroundings, concernedServices } from './cluster-view.ts';
import { watchConcernedJobs } from './concerned-jobs.ts';
import { createIndexes } from './indexes.ts';
import { createDeliveryInformers } from './informers.ts';
import { noObstacles } from './obstacles.ts';
import type { DigestedReplicaSet } from './trim-workloads.ts';

const NAMESPACE = 'shops';
let version = 0;

/** Metadata of an object that was just written. */
function meta(name: string, rest: Partial<Deployment['metadata']> = {}): Deployment['metadata'] {
  version += 1;
  return { name, namespace: NAMESPACE, uid: `uid-of-${name}`, resourceVersion: String(version), ...rest };
}

const ownedBy = (kind: string, name: string) => ({
  ownerReferences: [{ apiVersion: 'apps/v1', kind, name, uid: `uid-of-${name}`, controller: true }],
});

function template(image: string): Deployment['spec']['template'] {
  return { metadata: { labels: { app: 'shop' } }, spec: { containers: [{ name: 'main', image }] } };
}

function deployment(name: string, labels: Record<string, string>, image = 'shop:1'): Deployment {
  const spec = { replicas: 1, selector: { matchLabels: { app: 'shop' } }, template: template(image) };
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: meta(name, { labels }), spec };
}

function replicaSet(owner: string, hash: string, { image = 'shop:1', revision = 1 } = {}): DigestedReplicaSet {
  const made = template(image);
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: meta(`${owner}-${hash}`, {
      labels: { app: 'shop', 'pod-template-hash': hash },
      annotations: { 'deployment.kubernetes.io/revision': String(revision) },
      ...ownedBy('Deployment', owner),
    }),
    spec: {
      replicas: 1,
      template: { ...made, metadata: { labels: { ...made.metadata?.labels, 'pod-template-hash': hash } } },
    },
  };
}

function pod(owner: string, name: string, status: Pod['status'] = ready): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: meta(name, ownedBy('ReplicaSet', owner)),
    ...(status && { status }),
  };
}
const ready: Pod['status'] = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };

function service(name: string, selector: Record<string, string>, labels: Record<string, string> = {}): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: meta(name, { labels }),
    spec: { selector, ports: [{ port: 80 }] },
  };
}

function job(name: string, status?: Partial<DeliveryJobStatus>, serviceName = 'shop'): DeliveryJob {
  return {
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'DeliveryJob',
    metadata: meta(name, { namespace: 'rollcall', creationTimestamp: '2026-01-01T00:00:00Z' }),
    spec: {
      serviceName,
      operation: 'Deploy',
      version: '2',
      artifact: { type: 'image', url: 'shop:2' },
      abort: false,
      promote: false,
    },
    ...(status === undefined ? {} : { status: { phase: 'Progressing', ...status } }),
  };
}

const workload = { namespace: NAMESPACE, name: 'shop', uid: 'uid-of-shop' };

const superseding: DeliveryPolicy = {
  apiVersion: 'rollcall.dev/v1alpha1',
  kind: 'DeliveryPolicy',
  metadata: meta('all', { namespace: 'rollcall' }),
  spec: { ...policyFor('*', () => []), supersede: true },
};

const refuse = () => Promise.reject(new Error('nothing is read'));

/**
 * Copies that nobody fills but the test: what is recorded as written is reported like what a watch
 * brings.
 */
function setUp() {
  const connection: KubeConnection = { namespace: 'rollcall', request: refuse, stream: refuse, close: refuse };
  const common = { connection, clock: systemClock, log: createLogger('test', 'silent') };
  const services = [createInformer<Service>({ ...common, kind: serviceKind })];
  const informers = createDeliveryInformers({ ...common, namespace: 'rollcall', namespaces: [], services });
  const indexes = createIndexes(informers);
  const registrations = createInformer<ServiceRegistration>({ ...common, kind: serviceRegistrationKind });
  const leases = createInformer<Lease>({ ...common, kind: leaseKind });
  const enqueued: string[] = [];
  watchConcernedJobs({ informers, indexes, registrations, leases }, (key) => enqueued.push(key));
  const [deployments, extras, replicaSets, pods] = [
    informers.deployments[0],
    informers.extraDeployments[0],
    informers.replicaSets[0],
    informers.pods[0],
  ];
  if (deployments === undefined || extras === undefined || replicaSets === undefined || pods === undefined) {
    throw new Error('unreachable');
  }
  return {
    indexes,
    jobs: informers.jobs,
    policies: informers.policies,
    deployments,
    extras,
    replicaSets,
    pods,
    services: services[0] ?? createInformer<Service>({ ...common, kind: serviceKind }),
    registrations,
    leases,
    /** Which jobs a change concerns. */
    concerned: (change: () => void): string[] => {
      enqueued.length = 0;
      change();
      return [...new Set(enqueued)].toSorted();
    },
  };
}

let copies: ReturnType<typeof setUp>;
beforeEach(() => {
  copies = setUp();
});

test('a job is observed when anything that belongs to it changes, and no other job is', () => {
  copies.deployments.recordWrite(deployment('shop', { 'rollcall.dev/service': 'shop' }));
  copies.deployments.recordWrite(deployment('other', { 'rollcall.dev/service': 'other' }));
  copies.jobs.recordWrite(job('a', { workload }));
  copies.jobs.recordWrite(job('z', { workload: { ...workload, name: 'other', uid: 'uid-of-other' } }, 'other'));
  copies.extras.recordWrite(deployment('shop-green', { 'rollcall.dev/job': 'uid-of-a' }));
  const { concerned } = copies;
  const changes: readonly (() => void)[] = [
    () => copies.deployments.recordWrite(deployment('shop', { 'rollcall.dev/service': 'shop' })),
    () => copies.extras.recordWrite(deployment('shop-green', { 'rollcall.dev/job': 'uid-of-a' }, 'shop:2')),
    () => copies.replicaSets.recordWrite(replicaSet('shop', 'h1')),
    () => copies.replicaSets.recordWrite(replicaSet('shop-green', 'h2')),
    () => copies.pods.recordWrite(pod('shop-h1', 'shop-h1-1')),
    () => copies.pods.recordWrite(pod('shop-green-h2', 'shop-green-h2-1')),
    () => copies.pods.recordDelete(pod('shop-h1', 'shop-h1-1')),
    () => copies.registrations.recordWrite(registration('shop')),
    () => copies.leases.recordWrite(lease('shop')),
  ];
  for (const change of changes) expect(concerned(change)).toEqual(['rollcall/a']);
  expect(concerned(() => copies.pods.recordWrite(pod('unknown', 'stray')))).toEqual([]);
  expect(concerned(() => copies.leases.recordWrite(lease('unknown')))).toEqual([]);
});

test('a Service concerns the jobs whose pods it selects, or selected, whatever it is pinned to', () => {
  copies.deployments.recordWrite(deployment('shop', { 'rollcall.dev/service': 'shop' }));
  copies.jobs.recordWrite(job('a', { workload }));
  const { concerned, services } = copies;
  const write = (selector: Record<string, string>) => () => services.recordWrite(service('shop', selector));
  expect(concerned(write({ app: 'shop', 'pod-template-hash': 'h1' }))).toEqual(['rollcall/a']);
  expect(concerned(write({ app: 'elsewhere' }))).toEqual(['rollcall/a']);
  expect(concerned(write({ app: 'nowhere' }))).toEqual([]);
  const made = service('shop-canary', { app: 'x' }, { 'rollcall.dev/job': 'uid-of-a' });
  expect(concerned(() => services.recordWrite(made))).toEqual(['rollcall/a']);
});

test('the end, a pause and a new one of the jobs concern the first of those that wait, a new job all that it may supersede', () => {
  const { jobs, policies, concerned } = copies;
  jobs.recordWrite(job('a', { workload }));
  jobs.recordWrite(job('b'));
  expect(concerned(() => jobs.recordWrite(job('c')))).toEqual(['a', 'b', 'c'].map((name) => `rollcall/${name}`));
  policies.recordWrite(superseding);
  expect(concerned(() => jobs.recordWrite(job('d')))).toEqual(['a', 'b', 'c', 'd'].map((name) => `rollcall/${name}`));
  jobs.recordDelete(job('d'));
  expect(concerned(() => jobs.recordWrite(job('a', { workload, message: 'on' })))).toEqual(['rollcall/a']);
  const all = ['rollcall/a', 'rollcall/b', 'rollcall/c'];
  expect(concerned(() => jobs.recordWrite(job('a', { workload, phase: 'Paused' })))).toEqual(all);
  expect(concerned(() => jobs.recordWrite(job('a', { phase: 'Succeeded' })))).toEqual(all);
  expect(concerned(() => jobs.recordDelete(job('b')))).toEqual(['rollcall/b', 'rollcall/c']);
  for (let index = 10; index < 30; index += 1) jobs.recordWrite(job(`x${index}`));
  expect(concerned(() => jobs.recordDelete(job('c')))).toHaveLength(12);
});

test('the current pods are those of the template, also before the controller has reported, and only what runs counts', () => {
  const user = deployment('shop', { 'rollcall.dev/service': 'shop' }, 'shop:2');
  copies.deployments.recordWrite(user);
  copies.replicaSets.recordWrite(replicaSet('shop', 'old', { image: 'shop:1', revision: 7 }));
  copies.replicaSets.recordWrite(replicaSet('shop', 'new', { image: 'shop:2', revision: 8 }));
  copies.replicaSets.recordWrite(replicaSet('shop', 'ancient', { image: 'shop:0', revision: 3 }));
  copies.replicaSets.recordWrite(replicaSet('shop', 'stable', { image: 'shop:0.9', revision: 2 }));
  copies.pods.recordWrite(pod('shop-old', 'old-2', { phase: 'Running' }));
  copies.pods.recordWrite(pod('shop-old', 'old-1'));
  copies.pods.recordWrite(pod('shop-old', 'old-3', { phase: 'Failed' }));
  const leaving = pod('shop-old', 'old-4');
  copies.pods.recordWrite({ ...leaving, metadata: { ...leaving.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
  const extra = deployment('shop-green', { 'rollcall.dev/job': 'uid-of-a' }, 'shop:2');
  copies.extras.recordWrite(extra);
  copies.replicaSets.recordWrite(replicaSet('shop-green', 'green', { image: 'shop:2' }));
  copies.pods.recordWrite(pod('shop-green-green', 'green-1'));

  const running = job('a', { workload, stableHash: 'stable' });
  const knowledge = { job: running, saved: undefined, indexes: copies.indexes };
  const surroundings = buildSurroundings({ ...knowledge, namespace: NAMESPACE, services: [], routes: undefined });
  const view = buildClusterView(knowledge, { surroundings, deployment: user, obstacles: noObstacles });
  expect(view.replicaSets.map(({ hash, revision, current, pods }) => [hash, revision, current, pods])).toEqual([
    ['new', 8, true, []],
    [
      'old',
      7,
      false,
      [
        { name: 'old-1', ready: true, restarts: 0, fault: undefined },
        { name: 'old-2', ready: false, restarts: 0, fault: undefined, isComingUp: true },
      ],
    ],
    ['stable', 2, false, []],
  ]);
  expect(view.extra?.deployment).toBe(copies.indexes.extraDeployments.get('uid-of-a')[0]);
  expect(view.extra?.pods).toMatchObject({ hash: 'green', current: true, pods: [{ name: 'green-1' }] });
});

test('the Services of a job are those that select its pods, and those that it has saved, and none that jobs made', () => {
  const write = (made: Service) => copies.services.recordWrite(made);
  write(service('shop', { app: 'shop', 'pod-template-hash': 'h1' }));
  write(service('alias', { app: 'shop' }));
  write(service('moved', { app: 'shop', tier: 'front', 'pod-template-hash': 'h1' }));
  write(service('headless', {}));
  write(service('pinned-only', { 'pod-template-hash': 'h1' }));
  write(service('shop-canary', { app: 'shop' }, { 'rollcall.dev/job': 'uid-of-a' }));
  write(service('alias-canary', { app: 'shop' }, { 'rollcall.dev/job': 'uid-of-another' }));
  const running = job('a', { workload });
  const knowledge = { job: running, saved: undefined, indexes: copies.indexes };
  const labels = { app: 'shop', more: 'yes' };
  const services = concernedServices(knowledge, NAMESPACE, labels);
  expect(services.map(({ metadata }) => metadata.name)).toEqual(['alias', 'shop']);
  expect(concernedServices(knowledge, 'elsewhere', labels)).toEqual([]);
  const { extraServices } = buildSurroundings({ ...knowledge, namespace: NAMESPACE, services, routes: undefined });
  expect([...extraServices].map(([name, { metadata }]) => [name, metadata.name])).toEqual([['shop', 'shop-canary']]);
});

function registration(name: string): ServiceRegistration {
  return {
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'ServiceRegistration',
    metadata: meta(name, { namespace: 'rollcall' }),
    spec: { serviceName: name, url: 'http://shop', capabilities: ['rest'], source: 'API' },
  };
}

function lease(name: string): Lease {
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: meta(name, { namespace: 'rollcall' }) };
}
