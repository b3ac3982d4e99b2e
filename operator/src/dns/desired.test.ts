import type { ServiceRegistration, ServiceRegistrationSpec } from '@rollcall/crds/types.gen.ts';
import { expect, test } from 'vitest';
import { byRegistration, desiredName, isMirrored } from './desired.ts';

const zone = { namespace: 'names', clusterDomain: 'cluster.local', hostNames: 'any' } as const;

interface Instance extends Partial<ServiceRegistrationSpec> {
  readonly id: string;
  readonly health?: string;
  readonly at?: number;
}

function instance({ id, health, at = 0, ...spec }: Instance): ServiceRegistration {
  const registeredAt = new Date(at * 1000).toISOString();
  return {
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'ServiceRegistration',
    metadata: { name: id, uid: id, creationTimestamp: registeredAt },
    spec: { serviceName: 'shop', url: 'http://10.0.0.1', capabilities: ['rest'], source: 'API', ...spec },
    status: { registeredAt, ...(health === undefined ? {} : { health: { status: health, reportedAt: registeredAt } }) },
  };
}

function desired(...instances: Instance[]) {
  const { service, endpoints, leftOut } = desiredName(instances.map(instance).toSorted(byRegistration), zone);
  return {
    service,
    endpoints: endpoints.map(({ address, port, ready }) => `${address} ${port.port}${ready ? '' : ' not ready'}`),
    leftOut: leftOut.map(({ registration, reason }) => `${registration.metadata.name}: ${reason}`),
  };
}

const url = (...urls: string[]) => desired(...urls.map((each, at) => ({ id: `i${at}`, at, url: each })));

test.each([
  ['http://10.0.0.1', { name: 'http', port: 80, appProtocol: 'http' }],
  ['http://10.0.0.1:8080/base', { name: 'http', port: 8080, appProtocol: 'http' }],
  ['https://10.0.0.1', { name: 'https', port: 443, appProtocol: 'https' }],
  ['http://[fd00::1]:8080', { name: 'http', port: 8080, appProtocol: 'http' }],
])('%s is a headless Service with its port', (address, port) => {
  expect(url(address).service).toEqual({ type: 'headless', port });
});

test('who speaks gRPC alone has a port for it', () => {
  const port = { name: 'grpc', port: 80, appProtocol: 'kubernetes.io/h2c' };
  expect(desired({ id: 'a', capabilities: ['grpc'] }).service).toEqual({ type: 'headless', port });
  expect(desired({ id: 'a', capabilities: ['grpc', 'rest'] }).service?.port.name).toBe('http');
});

test('the port is that of the instance that has been registered longest', () => {
  const younger = { id: 'a', at: 2, url: 'http://10.0.0.1:1' };
  const older = { id: 'b', at: 1, url: 'http://10.0.0.2:2', health: 'unhealthy' };
  expect(desired(younger, older)).toMatchObject({
    service: { port: { port: 2 } },
    endpoints: ['10.0.0.2 2 not ready', '10.0.0.1 1'],
  });
});

test('who is not well is not ready, unless nobody is well', () => {
  const ill = ['unhealthy', 'Degraded', 'draining'].map((health, at) => {
    return { id: health, at, health, url: `http://10.0.0.${at}` };
  });
  expect(desired(...ill).endpoints).toEqual(['10.0.0.0 80', '10.0.0.1 80', '10.0.0.2 80']);
  expect(desired(...ill, { id: 'well', at: 9, url: 'http://10.0.0.9', health: 'fine' }).endpoints).toEqual([
    '10.0.0.0 80 not ready',
    '10.0.0.1 80 not ready',
    '10.0.0.2 80 not ready',
    '10.0.0.9 80',
  ]);
});

const declared = {
  type: 'tcp',
  intervalSeconds: 10,
  timeoutSeconds: 2,
  failureThreshold: 3,
  successThreshold: 2,
} as const;

test.each([
  ['a declared check', { check: declared }, [false, true]],
  ['what is left of one that was declared', {}, [true, true]],
])('of instances ready: %s that fails', (_what, spec, ready) => {
  const failing = instance({ id: 'a', ...spec });
  const check = { status: 'Failing', since: '2026-11-26T00:00:00Z', message: 'refused' } as const;
  const instances = [{ ...failing, status: { check } }, instance({ id: 'b', url: 'http://10.0.0.2' })];
  expect(desiredName(instances, zone).endpoints.map((endpoint) => endpoint.ready)).toEqual(ready);
});

test('two instances at one address are one endpoint', () => {
  expect(
    desired({ id: 'a', url: 'http://10.0.0.1/a', health: 'unhealthy' }, { id: 'b', url: 'http://10.0.0.1/b' }),
  ).toMatchObject({ endpoints: ['10.0.0.1 80'] });
});

test.each([
  ['http://shop.example.com.', 'shop.example.com'],
  ['http://Shop.Team.svc:8080', 'shop.team.svc.cluster.local'],
])('%s is an ExternalName, also of several instances', (address, host) => {
  expect(url(address, address)).toMatchObject({ service: { type: 'external', host }, endpoints: [], leftOut: [] });
});

test('a host name beside addresses, or another host name, is left out', () => {
  expect(url('http://a.example', 'http://10.0.0.1')).toMatchObject({
    endpoints: ['10.0.0.1 80'],
    leftOut: ['i0: HostNotPossible'],
  });
  expect(url('http://a.example', 'http://b.example')).toEqual({
    service: undefined,
    endpoints: [],
    leftOut: ['i0: HostNotPossible', 'i1: HostNotPossible'],
  });
});

test.each([
  ['http://127.0.0.1', 'AddressNotPossible'],
  ['http://[::1]', 'AddressNotPossible'],
  ['http://0.0.0.0', 'AddressNotPossible'],
  ['http://169.254.169.254', 'AddressNotPossible'],
  ['http://[fe80::1]', 'AddressNotPossible'],
  ['http://[ff02::1]', 'AddressNotPossible'],
  ['http://[::ffff:10.0.0.1]', 'AddressNotPossible'],
  ['http://localhost', 'HostNotPossible'],
  ['http://a_b.example', 'HostNotPossible'],
  ['http://kubernetes.default', 'HostNotPossible'],
  ['http://kubernetes.default.svc', 'HostNotPossible'],
  ['http://kubernetes.default.svc.cluster.local.', 'HostNotPossible'],
  ['http://shop.names', 'HostNotPossible'],
  ['http://shop.names.svc', 'HostNotPossible'],
  ['http://shop.names.svc.cluster.local', 'HostNotPossible'],
])('%s is left out', (address, reason) => {
  expect(url(address)).toEqual({ service: undefined, endpoints: [], leftOut: [`i0: ${reason}`] });
});

test.each([
  ['shop.team.svc', 'external'],
  ['shop-0.shop.team.svc.cluster.local', 'external'],
  ['169.254.169.254.nip.io', /^HostNotPossible: .* dns\.externalNames/],
  ['169-254-169-254.a.pod.cluster.local', /^HostNotPossible/],
  ['shop.team', /^HostNotPossible/],
  ['team.svc', /^HostNotPossible/],
])('by default %s is of a Service, or left out', (host, expected) => {
  const found = desiredName([instance({ id: 'a', url: `http://${host}` })], { ...zone, hostNames: 'services' });
  const [leftOut] = found.leftOut;
  expect(found.service?.type ?? `${leftOut?.reason}: ${leftOut?.message}`).toMatch(expected);
});

test.each(['Shop', '1shop', 'shop.eu', 'shop-', 's'.repeat(64), 'Größe'])('the name %s is left out', (serviceName) => {
  expect(desired({ id: 'a', serviceName }, { id: 'b', serviceName })).toEqual({
    service: undefined,
    endpoints: [],
    leftOut: ['a: NameNotPossible'],
  });
});

test('living instances that were registered over HTTP are mirrored', () => {
  const living = instance({ id: 'a' });
  expect(isMirrored(living)).toBe(true);
  expect(isMirrored({ ...living, status: { phase: 'Expired' } })).toBe(false);
  expect(isMirrored({ ...living, metadata: { ...living.metadata, deletionTimestamp: 'now' } })).toBe(false);
  expect(isMirrored(instance({ id: 'a', source: 'Manifest' }))).toBe(false);
});
