import { annotations } from '@rollcall/crds/kinds.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { type Service, serviceKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection, KubeRequest } from '@rollcall/platform/kube/connection.ts';
import { KubeApiError, KubeUnreachableError } from '@rollcall/platform/kube/errors.ts';
import { createInformer } from '@rollcall/platform/kube/informer.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { expect, test } from 'vitest';
import type { QueueView } from '../job/snapshot.ts';
import { buildAtStage, buildDeployment, buildJob, buildPolicy, buildRoute, buildService } from '../testing/builders.ts';
import { createDirectReads } from './direct-reads.ts';
import { createEndpointCache } from './endpoint-cache.ts';
import { createIndexes } from './indexes.ts';
import { createDeliveryInformers } from './informers.ts';
import { createRouteCache } from './route-cache.ts';
import { createWorkloadFinder } from './workload-finder.ts';
import { createWorkloadObserver } from './workload-observer.ts';

const route = buildRoute([{ backendRefs: [{ name: 'shop' }] }]);
const refuse = () => Promise.reject(new Error('not expected'));

const endpoint = (name: string, ready?: boolean) => ({
  addresses: ['10.0.0.1'],
  targetRef: { kind: 'Pod', name },
  ...(ready === undefined ? {} : { conditions: { ready } }),
});
const slice = {
  metadata: { name: 'shop-x', labels: { 'kubernetes.io/service-name': 'shop' } },
  addressType: 'IPv4',
  endpoints: [endpoint('a', true), endpoint('b', false), endpoint('c'), { addresses: ['192.0.2.1'] }],
};

/**
 * An API server with one route and one EndpointSlice, and copies with one Deployment and its
 * Service.
 */
function setUp({ slices = () => [slice, { ...slice, endpoints: null }] }: { slices?: () => readonly object[] } = {}) {
  const asked: string[] = [];
  async function answer({ path, query }: KubeRequest): Promise<unknown> {
    asked.push(path.split('/').at(-1) ?? '');
    if (path.includes('/deployments/') || path.includes('/deliveryjobs/')) {
      throw new KubeApiError(404, { code: 404, reason: 'NotFound', message: 'not there' });
    }
    if (path.endsWith('/endpointslices')) {
      const managed = 'endpointslice.kubernetes.io/managed-by=endpointslice-controller.k8s.io';
      expect(query).toEqual({ labelSelector: `kubernetes.io/service-name in (shop),${managed}` });
      return { items: slices() };
    }
    return { items: path.endsWith('/httproutes') ? [route] : [] };
  }
  const connection: KubeConnection = {
    namespace: 'default',
    request: <T>(request: KubeRequest) => answer(request) as Promise<T>,
    stream: refuse,
    close: refuse,
  };
  const common = { connection, clock: systemClock, log: createLogger('test', 'silent') };
  const services = createInformer<Service>({ ...common, kind: serviceKind });
  const informers = createDeliveryInformers({
    ...common,
    namespace: 'default',
    namespaces: [],
    services: [services],
  });
  const indexes = createIndexes(informers);
  const claim = { annotations: { [annotations.delivering]: 'default/deploy-shop/uid-job/2026-01-01T00:00:00Z' } };
  for (const informer of informers.deployments) informer.recordWrite(buildDeployment({ metadata: claim }));
  services.recordWrite(buildService());
  let nowMs = 0;
  const clock = { monotonicMs: () => nowMs };
  const reads = createDirectReads(connection);
  const routes = createRouteCache(reads, clock);
  const workloadFinder = createWorkloadFinder({ indexes, reads, namespaces: [], record: () => undefined });
  const endpoints = createEndpointCache(reads, clock);
  const observe = createWorkloadObserver({ indexes, reads, workloadFinder, routes, endpoints, clock });
  const policy = buildPolicy({ strategy: 'Canary', canary: { steps: [{ weight: 50 }], trafficRouter: 'GatewayAPI' } });
  return {
    asked,
    routes,
    pass: (ms: number) => {
      nowMs += ms;
    },
    observe: (ahead?: QueueView['ahead'], job = buildJob()) =>
      observe({ job, saved: undefined, indexes, policy }, { ahead, before: 0, supersededBy: undefined }),
    observeAt: (stage: string) => {
      const { job, saved } = buildAtStage({ strategy: 'BlueGreen', stage });
      return observe({ job, saved, indexes, policy }, { ahead: undefined, before: 0, supersededBy: undefined });
    },
  };
}

test('nobody asks the API server for a job that waits for another', async () => {
  const { asked, observe } = setUp();
  expect(await observe(buildJob({ metadata: { name: 'first' } }))).toEqual({ found: 'none' });
  expect(asked).toEqual([]);
  expect(await observe()).toMatchObject({ found: 'one', cluster: { routes: [route] } });
  expect(asked).toContain('httproutes');
});

test('of a job that was given up in the queue, the Deployment is found that still carries its claim', async () => {
  const { observe } = setUp();
  const status = { phase: 'RolledBack', stage: 'RolledBack' } as const;
  expect(await observe(undefined, buildJob({ status }))).toMatchObject({
    found: 'one',
    cluster: { deployment: { metadata: { name: 'shop' } } },
  });
  const other = buildJob({ status, metadata: { uid: 'uid-other' } });
  expect(await observe(undefined, other)).toEqual({ found: 'none' });
});

test('routes are listed once in a second, and anew after they were written', async () => {
  const { asked, observe, pass, routes } = setUp();
  const lists = () => asked.filter((path) => path === 'httproutes').length;
  await observe();
  pass(900);
  await observe();
  expect(lists()).toBe(1);
  routes.writeCache.informer.recordWrite(route);
  await observe();
  expect(lists()).toBe(2);
  pass(1000);
  await observe();
  expect(lists()).toBe(3);
});

test('what EndpointSlices say is asked for by stages that wait for it alone, once in half a second', async () => {
  const { asked, observeAt, pass } = setUp();
  const lists = () => asked.filter((path) => path === 'endpointslices').length;
  expect(await observeAt('Baking')).toMatchObject({ found: 'one', cluster: { endpoints: undefined } });
  expect(lists()).toBe(0);
  const seen = { found: 'one', cluster: { endpoints: new Map([['shop', new Set(['a', 'c'])]]) } };
  expect(await observeAt('CuttingOver')).toMatchObject(seen);
  pass(400);
  await observeAt('CuttingOver');
  expect(lists()).toBe(1);
  pass(100);
  await observeAt('CuttingOver');
  expect(lists()).toBe(2);
});

test.for([
  ['not allowed', new KubeApiError(403, { reason: 'Forbidden' }), 'forbidden'],
  ['throttled', new KubeApiError(429, { reason: 'TooManyRequests' }), 'unknown'],
  ['unavailable', new KubeApiError(503, { reason: 'ServiceUnavailable' }), 'unknown'],
  ['without an answer', new KubeUnreachableError('no answer in time'), 'unknown'],
] as const)('a job is observed, though EndpointSlices are not listed: %s', async ([, error, endpoints]) => {
  const slices = () => {
    throw error;
  };
  expect(await setUp({ slices }).observeAt('CuttingOver')).toMatchObject({ found: 'one', cluster: { endpoints } });
});
