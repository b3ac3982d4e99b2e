import type { EndpointSlice, Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Change } from '../runtime/decision.ts';
import type { DesiredEndpoint } from './desired.ts';
import { planSlices } from './slices.ts';

const service: Service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'shop', namespace: 'names', uid: 'service' },
};

const HTTP = { name: 'http', port: 80, appProtocol: 'http' } as const;

function endpoint(number: number, overrides: Partial<DesiredEndpoint> = {}): DesiredEndpoint {
  const address = `10.0.${Math.floor(number / 256)}.${number % 256}`;
  return { addressType: 'IPv4', address, port: HTTP, zone: undefined, ready: true, ...overrides };
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => endpoint(from + index));

/** The slices of one Service, as the API server keeps them. */
function createSlices(taken: readonly string[] = []) {
  const slices = new Map<string, EndpointSlice>();

  function write(change: Change): string {
    if (change.action === 'delete') {
      slices.delete(change.object.metadata.name);
      return `delete ${change.object.metadata.name}`;
    }
    if (change.action !== 'apply') throw new Error(change.action);
    const { name } = change.manifest.metadata;
    const slice = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', ...change.manifest };
    slices.set(name, structuredClone(slice) as EndpointSlice);
    return `${change.object === undefined ? 'create' : 'update'} ${name}`;
  }

  /** @returns what was written. */
  function set(endpoints: readonly DesiredEndpoint[], portName = 'http'): string[] {
    const isTaken = (name: string) => taken.includes(name) || slices.has(name);
    return planSlices({ service, portName, endpoints, slices: [...slices.values()], labels: {}, isTaken }).map(write);
  }

  const addresses = () =>
    [...slices.values()].flatMap(({ endpoints }) => endpoints?.flatMap((each) => each.addresses) ?? []);
  return { slices, set, addresses };
}

test('a thousand instances are ten slices, and a join, a leave or a move is one write', () => {
  const { set, slices } = createSlices();
  expect(set(range(0, 1000))).toHaveLength(10);
  expect([...slices.values()].map(({ endpoints }) => endpoints?.length)).toEqual(Array.from({ length: 10 }, () => 100));
  expect(set(range(0, 1000))).toEqual([]);
  expect(set(range(0, 1000).toReversed())).toEqual([]);
  expect(set(range(0, 1001))).toEqual(['create shop-ipv4-80-11']);
  expect(set(range(1, 1001))).toEqual(['update shop-ipv4-80-1']);
  expect(set([...range(1, 1000), endpoint(2000)])).toEqual(['update shop-ipv4-80-11']);
  const moved = [...range(2, 1000), endpoint(3000, { ready: false }), endpoint(2000)];
  expect(set(moved)).toEqual(['update shop-ipv4-80-1']);
  expect(set(moved.slice(0, -1))).toEqual(['delete shop-ipv4-80-11']);
});

test('families, ports and protocols have slices of their own, with the name of the one port', () => {
  const { set, slices } = createSlices();
  const written = set(
    [
      endpoint(1),
      endpoint(2, { port: { ...HTTP, port: 8080 } }),
      endpoint(3, { port: { name: 'grpc', port: 80, appProtocol: 'kubernetes.io/h2c' } }),
      endpoint(4, { addressType: 'IPv6', address: 'fd00::1', zone: 'a' }),
    ],
    'https',
  );
  const names = ['shop-ipv4-80-1', 'shop-ipv4-8080-1', 'shop-ipv4-80-2', 'shop-ipv6-80-1'];
  expect(written).toEqual(names.map((name) => `create ${name}`));
  expect(new Set([...slices.values()].flatMap(({ ports }) => ports?.map(({ name }) => name)))).toEqual(
    new Set(['https']),
  );
  expect(slices.get('shop-ipv6-80-1')).toMatchObject({
    metadata: { labels: { 'kubernetes.io/service-name': 'shop' }, ownerReferences: [{ uid: 'service' }] },
    addressType: 'IPv6',
    ports: [{ name: 'https', port: 80, protocol: 'TCP', appProtocol: 'http' }],
    endpoints: [{ addresses: ['fd00::1'], conditions: { ready: true }, zone: 'a' }],
  });
});

test('a name that anything has is passed over', () => {
  expect(createSlices(['shop-ipv4-80-1']).set([endpoint(1)])).toEqual(['create shop-ipv4-80-2']);
});

test('a slice of an earlier Service gets the new owner', () => {
  const { set, slices } = createSlices();
  set([endpoint(1)]);
  for (const [name, slice] of slices) {
    const ownerReferences = [{ apiVersion: 'v1', kind: 'Service', name: 'shop', uid: 'earlier' }];
    slices.set(name, { ...slice, metadata: { ...slice.metadata, ownerReferences } });
  }
  expect(set([endpoint(1)])).toEqual(['update shop-ipv4-80-1']);
});

test('whatever comes and goes, each endpoint is in one slice, none is empty or too full, and the plan is at rest', () => {
  const members = fc.uniqueArray(fc.nat({ max: 400 }), { maxLength: 400 });
  fc.assert(
    fc.property(fc.array(members, { maxLength: 8 }), (steps) => {
      const { set, slices, addresses } = createSlices();
      for (const step of steps) {
        const wanted = step.map((number) => endpoint(number));
        set(wanted);
        expect(addresses().toSorted()).toEqual(wanted.map(({ address }) => address).toSorted());
        for (const { endpoints } of slices.values()) {
          expect(endpoints?.length).toBeGreaterThan(0);
          expect(endpoints?.length).toBeLessThanOrEqual(100);
        }
        expect(set(wanted)).toEqual([]);
      }
    }),
    { numRuns: 50 },
  );
});
