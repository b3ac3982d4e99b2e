import type { Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import { expect, test } from 'vitest';
import { type Desired, desiredRegistration } from './desired.ts';

type Ports = NonNullable<Service['spec']>['ports'];

function desired(annotations: Record<string, string>, ports: Ports = [{ port: 8080 }]): Desired {
  return desiredRegistration({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'shop', namespace: 'team', annotations: { 'rollcall.dev/register': 'true', ...annotations } },
    spec: ports === undefined ? {} : { ports },
  });
}

const spec = (overrides: object = {}) => ({
  wanted: 'registration',
  spec: {
    serviceName: 'shop',
    url: 'http://shop.team.svc:8080',
    capabilities: ['rest'],
    source: 'KubernetesService',
    ...overrides,
  },
});

test.each<{ sentence: string; annotations: Record<string, string>; ports?: Ports; expected: object }>([
  { sentence: 'all is derived where only registration is asked for', annotations: {}, expected: spec() },
  {
    sentence: 'the name can be given',
    annotations: { 'rollcall.dev/service-name': 'Großer Laden.EU'.replace(' ', '-') },
    expected: spec({ serviceName: 'Großer-Laden.EU' }),
  },
  {
    sentence: 'the URL can be given',
    annotations: { 'rollcall.dev/url': 'https://shop.example.org/base' },
    expected: spec({ url: 'https://shop.example.org/base' }),
  },
  {
    sentence: 'capabilities can be given, with spaces and doubles',
    annotations: { 'rollcall.dev/capabilities': 'grpc, rest ,grpc' },
    expected: spec({ capabilities: ['rest', 'grpc'] }),
  },
  {
    sentence: 'no capabilities can be given',
    annotations: { 'rollcall.dev/capabilities': '' },
    expected: spec({ capabilities: [] }),
  },
  {
    sentence: 'the first port is used where none is named http',
    annotations: {},
    ports: [
      { name: 'metrics', port: 9090 },
      { name: 'other', port: 1 },
    ],
    expected: spec({ url: 'http://shop.team.svc:9090' }),
  },
  {
    sentence: 'the port named http is used',
    annotations: {},
    ports: [
      { name: 'metrics', port: 9090 },
      { name: 'http', port: 80 },
    ],
    expected: spec({ url: 'http://shop.team.svc:80' }),
  },
  {
    sentence: 'the port named https is used as such',
    annotations: {},
    ports: [
      { name: 'metrics', port: 9090 },
      { name: 'https', port: 8443 },
    ],
    expected: spec({ url: 'https://shop.team.svc:8443' }),
  },
  {
    sentence: 'appProtocol makes it https',
    annotations: {},
    ports: [{ name: 'web', port: 8443, appProtocol: 'HTTPS' }],
    expected: spec({ url: 'https://shop.team.svc:8443' }),
  },
  {
    sentence: 'a Service with a URL needs no port',
    annotations: { 'rollcall.dev/url': 'http://elsewhere' },
    ports: [],
    expected: spec({ url: 'http://elsewhere' }),
  },
  {
    sentence: 'UDP ports are passed over',
    annotations: {},
    ports: [
      { name: 'http', port: 53, protocol: 'UDP' },
      { name: 'other', port: 8080, protocol: 'TCP' },
      { name: 'late', port: 1 },
    ],
    expected: spec({ url: 'http://shop.team.svc:8080' }),
  },
  {
    sentence: 'instances can be said to be the Service, as by default',
    annotations: { 'rollcall.dev/instances': 'service' },
    expected: spec(),
  },
  {
    sentence: 'instances can be the endpoints, at the port that the URL would have',
    annotations: { 'rollcall.dev/instances': 'endpoints' },
    ports: [
      { name: 'metrics', port: 9090 },
      { name: 'https', port: 443 },
    ],
    expected: {
      wanted: 'instances',
      spec: { serviceName: 'shop', capabilities: ['rest'], source: 'KubernetesService' },
      port: { scheme: 'https', name: 'https' },
    },
  },
  {
    sentence: 'false asks for nothing',
    annotations: { 'rollcall.dev/register': 'false' },
    expected: { wanted: 'nothing' },
  },
  ...['True', 'yes', '1', ''].map((value) => ({
    sentence: `'${value}' is not understood`,
    annotations: { 'rollcall.dev/register': value },
    expected: { wanted: 'nothing', fault: 'rollcall.dev/register must be "true" or "false"' },
  })),
])('$sentence', ({ annotations, ports, expected }) => {
  expect(ports === undefined ? desired(annotations) : desired(annotations, ports)).toEqual(expected);
});

test.each<{ sentence: string; annotations: Record<string, string>; ports?: Ports; fault: RegExp }>([
  { sentence: 'no port and no URL', annotations: {}, ports: [], fault: /url is needed/ },
  {
    sentence: 'no TCP port and no URL',
    annotations: {},
    ports: [
      { port: 53, protocol: 'UDP' },
      { port: 54, protocol: 'SCTP' },
    ],
    fault: /no TCP port/,
  },
  { sentence: 'a URL with a query', annotations: { 'rollcall.dev/url': 'http://shop/?a=b' }, fault: /query/ },
  { sentence: 'a URL with port 0', annotations: { 'rollcall.dev/url': 'http://shop:0' }, fault: /port 0/ },
  { sentence: 'a name that URLs fold', annotations: { 'rollcall.dev/service-name': '..' }, fault: /'\.\.'/ },
  {
    sentence: 'a name with a colon',
    annotations: { 'rollcall.dev/service-name': 'a:b' },
    fault: /service-name must not/,
  },
  {
    sentence: 'a name with a space',
    annotations: { 'rollcall.dev/service-name': 'a b' },
    fault: /service-name must not/,
  },
  {
    sentence: 'an empty name',
    annotations: { 'rollcall.dev/service-name': '' },
    fault: /service-name must not be empty/,
  },
  { sentence: 'a name for all', annotations: { 'rollcall.dev/service-name': '*' }, fault: /all services/ },
  { sentence: 'a relative URL', annotations: { 'rollcall.dev/url': '/shop' }, fault: /absolute http or https/ },
  { sentence: 'a script for a URL', annotations: { 'rollcall.dev/url': 'javascript:alert(1)' }, fault: /absolute/ },
  { sentence: 'a URL with a password', annotations: { 'rollcall.dev/url': 'http://a:b@shop' }, fault: /credentials/ },
  { sentence: 'a URL with a space', annotations: { 'rollcall.dev/url': 'http://shop/a b' }, fault: /white space/ },
  { sentence: 'an empty URL', annotations: { 'rollcall.dev/url': '' }, fault: /url must not be empty/ },
  { sentence: 'a URL with three slashes', annotations: { 'rollcall.dev/url': 'http:///shop' }, fault: /absolute/ },
  { sentence: 'a URL with an empty user', annotations: { 'rollcall.dev/url': 'http://@shop' }, fault: /credentials/ },
  { sentence: 'an encoded host', annotations: { 'rollcall.dev/url': 'http://sh%6Fp' }, fault: /Punycode/ },
  {
    sentence: 'a URL that is too long',
    annotations: { 'rollcall.dev/url': `http://shop/${'a'.repeat(2048)}` },
    fault: /2048/,
  },
  {
    sentence: 'an unknown form of instances',
    annotations: { 'rollcall.dev/instances': 'pods' },
    fault: /instances must be service or endpoints/,
  },
  {
    sentence: 'a URL for all endpoints',
    annotations: { 'rollcall.dev/instances': 'endpoints', 'rollcall.dev/url': 'http://shop' },
    fault: /url has no meaning with/,
  },
  {
    sentence: 'endpoints without a TCP port',
    annotations: { 'rollcall.dev/instances': 'endpoints' },
    ports: [{ port: 53, protocol: 'UDP' }],
    fault: /no endpoints with a TCP port/,
  },
  {
    sentence: 'an unknown capability',
    annotations: { 'rollcall.dev/capabilities': 'rest,soap' },
    fault: /rest, graphql, grpc, mcp/,
  },
])('$sentence is impossible', ({ annotations, ports, fault }) => {
  const found = ports === undefined ? desired(annotations) : desired(annotations, ports);
  expect(found).toEqual({ wanted: 'impossible', faults: [expect.stringMatching(fault)] });
});

test('reports every fault', () => {
  const found = desired({
    'rollcall.dev/url': 'x',
    'rollcall.dev/capabilities': 'soap',
    'rollcall.dev/service-name': '',
  });
  expect(found.wanted === 'impossible' && found.faults.length).toBe(3);
});
