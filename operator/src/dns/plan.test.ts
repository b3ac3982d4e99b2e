import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { EndpointSlice, Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import { expect, test } from 'vitest';
import { type DnsSnapshot, planDns } from './plan.ts';

const OWN = { 'app.kubernetes.io/managed-by': 'rollcall', 'rollcall.dev/mirrored-from': 'registry' };
const LABELS = { ...OWN, 'rollcall.dev/service': 'shop' };

const HEADLESS = {
  type: 'ClusterIP',
  clusterIP: 'None',
  ports: [{ name: 'http', port: 80, protocol: 'TCP', appProtocol: 'http', targetPort: 80 }],
};

function service(overrides: Partial<Service['metadata']> = {}, spec: Service['spec'] = HEADLESS): Service {
  const metadata = { name: 'shop', namespace: 'names', uid: 'service', labels: LABELS, ...overrides };
  return { apiVersion: 'v1', kind: 'Service', metadata, spec };
}

function slice(labels: Readonly<Record<string, string>> = LABELS): EndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: 'shop-ipv4-80-1',
      namespace: 'names',
      labels: { ...labels, 'kubernetes.io/service-name': 'shop' },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Service', name: 'shop', uid: 'service' }],
    },
    addressType: 'IPv4',
    ports: [{ name: 'http', port: 80, protocol: 'TCP', appProtocol: 'http' }],
    endpoints: [{ addresses: ['10.0.0.1'], conditions: { ready: true } }],
  };
}

function instance(url = 'http://10.0.0.1', serviceName = 'shop'): ServiceRegistration {
  return {
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'ServiceRegistration',
    metadata: { name: 'shop', uid: 'instance' },
    spec: { serviceName, url, capabilities: ['rest'], source: 'API' },
  };
}

function plan(overrides: Partial<DnsSnapshot>) {
  const { changes, requeueAfterMs } = planDns({
    serviceName: 'shop',
    instances: [],
    service: undefined,
    slices: [],
    isSliceNameTaken: () => false,
    zone: { namespace: 'names', clusterDomain: 'cluster.local', hostNames: 'services' },
    registrationNamespace: 'registry',
    isTold: () => false,
    ...overrides,
  });
  const actions = changes.map((change) => {
    if (change.action === 'event') return `event ${change.reason}`;
    return `${change.action} ${change.kind.kind}`;
  });
  return { actions, changes, requeueAfterMs };
}

test('the Service comes first, as its slices need its uid', () => {
  const { changes, requeueAfterMs } = plan({ instances: [instance()] });
  const ports = [{ name: 'http', port: 80, protocol: 'TCP', appProtocol: 'http' }];
  const spec = { type: 'ClusterIP', clusterIP: 'None', ports };
  expect(changes).toMatchObject([
    { action: 'apply', object: undefined, manifest: { metadata: { name: 'shop', labels: LABELS }, spec } },
  ]);
  expect(requeueAfterMs).toBe(0);
  expect(plan({ instances: [instance()], service: service() }).actions).toEqual(['apply EndpointSlice']);
});

test('where all is as it should be, and others have added to it, nothing is written', () => {
  const spec = { ...HEADLESS, ports: [...HEADLESS.ports, { name: 'metrics', port: 9090, protocol: 'TCP' }] };
  const found = service({ labels: { ...LABELS, team: 'a' } }, spec);
  expect(plan({ instances: [instance()], service: found, slices: [slice()] }).actions).toEqual([]);
});

test.each([
  ['its port', { ...HEADLESS, ports: [{ name: 'http', port: 81, protocol: 'TCP', appProtocol: 'http' }] }],
  ['the name of its port', { ...HEADLESS, ports: [{ ...HEADLESS.ports[0], port: 80, name: 'web' }] }],
  ['its type', { type: 'ExternalName', externalName: 'shop.example' }],
])('a Service in which somebody has changed %s is written again', (_what, spec) => {
  const found = { instances: [instance()], service: service({}, spec), slices: [slice()] };
  expect(plan(found).actions).toEqual(['apply Service']);
});

test('a host name takes the slices away', () => {
  const found = { instances: [instance('http://shop.team.svc')], service: service(), slices: [slice()] };
  expect(plan(found).actions).toEqual(['apply Service', 'delete EndpointSlice']);
});

test('what nothing stands behind is deleted, and what is not ours stays', () => {
  expect(plan({ service: service(), slices: [slice()] }).actions).toEqual(['delete Service', 'delete EndpointSlice']);
  expect(plan({ service: service({ labels: {} }), slices: [slice({})] }).actions).toEqual([]);
  const other = { ...LABELS, 'rollcall.dev/mirrored-from': 'another' };
  expect(plan({ service: service({ labels: other }), slices: [slice(other)] }).actions).toEqual([]);
});

test('a Service of somebody else keeps its name, also where it was ours', () => {
  const taken = { instances: [instance()], service: service({ labels: {} }), slices: [slice()] };
  expect(plan(taken).actions).toEqual(['delete EndpointSlice', 'event NameTaken']);
});

test('a Service that is going is waited for', () => {
  const going = service({ deletionTimestamp: 'now' });
  expect(plan({ instances: [instance()], service: going, slices: [slice()] }).actions).toEqual([]);
  expect(plan({ service: going }).actions).toEqual([]);
});

test('an Event is not repeated', () => {
  const instances = [instance('http://127.0.0.1')];
  expect(plan({ instances }).actions).toEqual(['event AddressNotPossible']);
  expect(plan({ instances, isTold: ({ reason }) => reason === 'AddressNotPossible' }).actions).toEqual([]);
});
