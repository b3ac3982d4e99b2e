import type { EndpointSlice, Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import { expect, test } from 'vitest';
import type { Desired } from './desired.ts';
import { endpointsOf, wantedInstances } from './endpoints.ts';

type Wanted = Extract<Desired, { wanted: 'instances' }>;
type Endpoint = NonNullable<EndpointSlice['endpoints']>[number];

function slice(endpoints: readonly Endpoint[], given: Partial<EndpointSlice> = {}): EndpointSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'shop-1' },
    addressType: 'IPv4',
    ports: [
      { name: 'metrics', port: 9090, protocol: 'TCP' },
      { name: 'http', port: 8080, protocol: 'TCP' },
    ],
    endpoints,
    ...given,
  };
}

const pod = (name: string, address = '10.0.0.7', given: Partial<Endpoint> = {}): Endpoint => ({
  addresses: [address],
  targetRef: { kind: 'Pod', name },
  ...given,
});

function instances(slices: readonly EndpointSlice[], ipFamilies?: string[]): string[] {
  const service: Service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'shop' },
    spec: ipFamilies === undefined ? {} : { ipFamilies },
  };
  const spec: Wanted['spec'] = { serviceName: 'shop', capabilities: [], source: 'KubernetesService' };
  const desired: Wanted = { wanted: 'instances', spec, port: { scheme: 'http', name: 'http' } };
  return wantedInstances(desired, endpointsOf(service, slices)).map(({ spec: { instanceId, url, zone }, ready }) =>
    [instanceId, url, zone ?? '', ready ? 'ready' : 'not ready'].join(' ').replaceAll('  ', ' '),
  );
}

test.each<{ sentence: string; slices: EndpointSlice[]; ipFamilies?: string[]; expected: string[] }>([
  {
    sentence: 'a pod gives the id, its address and the slice the URL',
    slices: [slice([pod('shop-b', '10.0.0.8'), pod('shop-a', '10.0.0.7', { zone: 'eu-1a' })])],
    expected: ['shop-a http://10.0.0.7:8080 eu-1a ready', 'shop-b http://10.0.0.8:8080 ready'],
  },
  {
    sentence: 'what is no pod, or has a name that is no id, has the id of its address',
    slices: [slice([{ addresses: ['10.0.0.1'] }, pod('shop.1', '10.0.0.2')])],
    expected: ['10-0-0-1 http://10.0.0.1:8080 ready', '10-0-0-2 http://10.0.0.2:8080 ready'],
  },
  {
    sentence: 'an address of IPv6 has brackets, and an id without gaps',
    slices: [slice([{ addresses: ['2001:DB8::7'] }, { addresses: ['::8'] }], { addressType: 'IPv6' })],
    ipFamilies: ['IPv6', 'IPv4'],
    expected: ['0-0-0-0-0-0-0-8 http://[::8]:8080 ready', '2001-db8-0-0-0-0-0-7 http://[2001:DB8::7]:8080 ready'],
  },
  {
    sentence: 'of two families the first of the Service counts',
    slices: [slice([pod('a')]), slice([pod('a', 'fd00::7')], { addressType: 'IPv6' })],
    ipFamilies: ['IPv4', 'IPv6'],
    expected: ['a http://10.0.0.7:8080 ready'],
  },
  {
    sentence: 'what is about to end is not ready, though it serves',
    slices: [
      slice([
        pod('a', '10.0.0.1', { conditions: { ready: false, serving: true, terminating: true } }),
        pod('b', '10.0.0.2', { conditions: { ready: true, serving: true, terminating: true } }),
        pod('c', '10.0.0.3', { conditions: { ready: false } }),
        pod('d', '10.0.0.4', { conditions: {} }),
      ]),
    ],
    expected: [
      'a http://10.0.0.1:8080 not ready',
      'b http://10.0.0.2:8080 not ready',
      'c http://10.0.0.3:8080 not ready',
      'd http://10.0.0.4:8080 ready',
    ],
  },
  {
    sentence: 'one that is in two slices is one, and ready where any says so',
    slices: [
      slice([pod('a', '10.0.0.1', { conditions: { ready: false } })]),
      slice([pod('a', '10.0.0.2')]),
      slice([pod('a', '10.0.0.3')]),
    ],
    expected: ['a http://10.0.0.2:8080 ready'],
  },
  {
    sentence: 'the number of a port is that of the slice, and without the port there is nothing',
    slices: [
      slice([pod('a', '10.0.0.1')], { ports: [{ name: 'http', port: 9 }] }),
      slice([pod('b', '10.0.0.2')], { ports: [{ name: 'http', port: 53, protocol: 'UDP' }] }),
      slice([pod('c', '10.0.0.3')], { ports: [] }),
    ],
    expected: ['a http://10.0.0.1:9 ready'],
  },
  {
    sentence: 'a zone that no registration may have is left out',
    slices: [slice([pod('a', '10.0.0.1', { zone: 'a b' })])],
    expected: ['a http://10.0.0.1:8080 ready'],
  },
])('$sentence', ({ slices, ipFamilies, expected }) => {
  expect(instances(slices, ipFamilies)).toEqual(expected);
});
