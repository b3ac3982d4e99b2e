import { objectNameFor } from '@rollcall/crds/kinds.ts';
import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import { describe, expect, test } from 'vitest';
import type { DesiredSpec } from './desired.ts';
import { type ImportSnapshot, planImport } from './plan.ts';

const service: Service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'shop', namespace: 'team' } };
const spec: DesiredSpec = {
  serviceName: 'shop',
  url: 'http://shop.team.svc:80',
  capabilities: ['rest'],
  source: 'KubernetesService',
};

interface Given {
  readonly name?: string;
  readonly from?: string | undefined;
  readonly spec?: Partial<ServiceRegistration['spec']>;
  readonly phase?: 'Registered' | 'Expired';
  readonly leaving?: boolean;
  /** Seconds after twelve. */
  readonly createdAt?: number;
}

function registration({
  name = 'shop',
  from = 'team/shop',
  phase = 'Registered',
  leaving = false,
  createdAt = 0,
  ...given
}: Given = {}): ServiceRegistration {
  return {
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'ServiceRegistration',
    metadata: {
      name,
      namespace: 'registry',
      uid: `uid-${name}`,
      resourceVersion: '3',
      creationTimestamp: `2026-11-20T12:00:0${createdAt}Z`,
      annotations: { 'rollcall.dev/imported-from': from },
      ...(leaving ? { deletionTimestamp: '2026-11-20T12:00:00Z' } : {}),
    },
    spec: { ...spec, serviceName: name, ...given.spec },
    status: { phase },
  };
}

function plan(overrides: Partial<ImportSnapshot>) {
  const decision = planImport({
    serviceKey: 'team/shop',
    service,
    desired: { wanted: 'registration', spec },
    wanted: [{ spec, ready: true }],
    imported: [],
    others: [],
    namespace: 'registry',
    ...overrides,
  });
  const changes = decision.changes.map((change) => {
    if (change.action === 'event') return `event ${change.reason}`;
    return `${change.action} ${('manifest' in change ? change.manifest : change.object).metadata.name}`;
  });
  return { ...decision, actions: changes };
}

const own = registration();
const held = (holder: ServiceRegistration) => ({ imported: [holder] });
const unready = { wanted: [{ spec, ready: false }] };

test.each<{ sentence: string; snapshot: Partial<ImportSnapshot>; expected: string[] }>([
  {
    sentence: 'a word that is not understood ends the registration and is reported',
    snapshot: { ...held(own), desired: { wanted: 'nothing', fault: 'register must be "true" or "false"' } },
    expected: ['delete shop', 'event InvalidRegistration'],
  },
  { sentence: 'a Service without a registration gets one', snapshot: {}, expected: ['create shop'] },
  { sentence: 'even before an endpoint is ready', snapshot: unready, expected: ['create shop'] },
  { sentence: 'one that has its registration is left alone', snapshot: held(own), expected: [] },
  {
    sentence: 'a new URL is written',
    snapshot: held(registration({ spec: { url: 'http://old' } })),
    expected: ['patch shop'],
  },
  {
    sentence: 'new capabilities are written',
    snapshot: held(registration({ spec: { capabilities: ['grpc'] } })),
    expected: ['patch shop'],
  },
  {
    sentence: 'a new name is another registration',
    snapshot: { imported: [registration({ name: 'old-name' })] },
    expected: ['delete old-name', 'create shop'],
  },
  {
    sentence: 'an Expired one is replaced when an endpoint is ready',
    snapshot: held(registration({ phase: 'Expired' })),
    expected: ['delete shop', 'create shop'],
  },
  {
    sentence: 'an Expired one stays while none is',
    snapshot: { ...held(registration({ phase: 'Expired' })), ...unready },
    expected: [],
  },
  {
    sentence: 'one that is being deleted is waited for',
    snapshot: held(registration({ leaving: true })),
    expected: [],
  },
  {
    sentence: 'all go with the Service',
    snapshot: { service: undefined, imported: [own, registration({ name: 'other' })] },
    expected: ['delete shop', 'delete other'],
  },
  {
    sentence: 'all go with the annotation',
    snapshot: { desired: { wanted: 'nothing' }, imported: [own] },
    expected: ['delete shop'],
  },
  {
    sentence: 'faulty annotations leave what there is',
    snapshot: { desired: { wanted: 'impossible', faults: ['no'] }, imported: [own] },
    expected: ['event InvalidRegistration'],
  },
])('$sentence', ({ snapshot, expected }) => {
  expect(plan(snapshot).actions).toEqual(expected);
});

test.each([
  { sentence: 'a program', holder: registration({ spec: { source: 'API' } }), by: 'API' },
  { sentence: 'a manifest', holder: registration({ spec: { source: 'Manifest' } }), by: 'Manifest' },
  { sentence: 'another Service', holder: registration({ from: 'other/shop' }), by: 'other/shop' },
  {
    sentence: 'a program, though Expired',
    holder: registration({ spec: { source: 'API' }, phase: 'Expired' }),
    by: 'API',
  },
])('a name held by $sentence is not claimed, reported, and tried again', ({ holder, by }) => {
  const { actions, changes, requeueAfterMs } = plan({ others: [holder] });
  expect(actions).toEqual(['event NameTaken']);
  expect(changes[0]).toMatchObject({ type: 'Warning', message: expect.stringContaining(`(${by})`) });
  expect(requeueAfterMs).toBeGreaterThan(0);
});

test('what it creates says where it came from and needs no heartbeats', () => {
  const named = { ...spec, serviceName: 'Shop EU' };
  const desired = { wanted: 'registration', spec: named } as const;
  expect(plan({ desired, wanted: [{ spec: named, ready: true }] }).changes[0]).toMatchObject({
    manifest: {
      metadata: {
        name: objectNameFor('Shop EU'),
        namespace: 'registry',
        annotations: { 'rollcall.dev/imported-from': 'team/shop' },
      },
      spec: { serviceName: 'Shop EU', source: 'KubernetesService' },
    },
  });
});

describe('by its endpoints', () => {
  const desired = { wanted: 'instances', spec, port: { scheme: 'http', name: '' } } as const;
  const instanceSpec = (instanceId: string) => ({ ...spec, instanceId, url: `http://${instanceId}:80` });
  const instance = (id: string, given: Given = {}) =>
    registration({ ...given, name: `shop.i.${id}`, spec: { ...instanceSpec(id), ...given.spec } });
  const wanted = (ready: Readonly<Record<string, boolean>>) => ({
    desired,
    wanted: Object.entries(ready).map(([id, isReady]) => ({ spec: instanceSpec(id), ready: isReady })),
  });

  test.each<{ sentence: string; snapshot: Partial<ImportSnapshot>; expected: string[] }>([
    {
      sentence: 'the first is registered alone, to have an id for the others',
      snapshot: wanted({ a: false, b: true, c: true }),
      expected: ['create shop.i.b'],
    },
    {
      sentence: 'the others follow, and none that is not ready',
      snapshot: { ...wanted({ a: false, b: true, c: true, d: true }), imported: [instance('b')] },
      expected: ['create shop.i.c', 'create shop.i.d'],
    },
    {
      sentence: 'one that is there and not ready stays',
      snapshot: { ...wanted({ a: false }), imported: [instance('a')] },
      expected: [],
    },
    {
      sentence: 'one that is gone goes at once, before others are made',
      snapshot: { ...wanted({ a: true, c: true }), imported: [instance('a'), instance('b')] },
      expected: ['delete shop.i.b', 'create shop.i.c'],
    },
    {
      sentence: 'the last one goes with its endpoint',
      snapshot: { ...wanted({}), imported: [instance('a')] },
      expected: ['delete shop.i.a'],
    },
    {
      sentence: 'where all are replaced the name is never without one',
      snapshot: { ...wanted({ b: true }), imported: [instance('a')] },
      expected: ['create shop.i.b', 'delete shop.i.a'],
    },
    {
      sentence: 'Expired ones are made anew when they are ready',
      snapshot: {
        ...wanted({ a: true, b: false, c: true }),
        imported: [instance('a', { phase: 'Expired' }), instance('b', { phase: 'Expired' }), instance('c')],
      },
      expected: ['delete shop.i.a', 'create shop.i.a'],
    },
    {
      sentence: 'another address is written',
      snapshot: { ...wanted({ a: true }), imported: [instance('a', { spec: { url: 'http://old', zone: 'z1' } })] },
      expected: ['patch shop.i.a'],
    },
    {
      sentence: 'they take over from the Service itself',
      snapshot: { ...wanted({ a: true, b: true }), imported: [own] },
      expected: ['create shop.i.a', 'create shop.i.b', 'delete shop'],
    },
    {
      sentence: 'which stays until one of them is ready',
      snapshot: { ...wanted({ a: false }), imported: [own] },
      expected: [],
    },
    {
      sentence: 'and not when it has Expired',
      snapshot: { ...wanted({ a: false }), imported: [registration({ phase: 'Expired' })] },
      expected: ['delete shop'],
    },
    {
      sentence: 'the Service takes over from them',
      snapshot: { imported: [instance('a'), instance('b')] },
      expected: ['create shop', 'delete shop.i.a', 'delete shop.i.b'],
    },
    {
      sentence: 'nothing is done while nobody knows the endpoints',
      snapshot: { desired, wanted: undefined, imported: [own, instance('a')] },
      expected: [],
    },
  ])('$sentence', ({ snapshot, expected }) => {
    expect(plan(snapshot).actions).toEqual(expected);
  });

  test('an instance has the id of the name, whoever had it first', () => {
    const first = instance('b', { createdAt: 1, spec: { serviceId: 'of-the-name' } });
    const later = instance('a', { createdAt: 2 });
    const { changes } = plan({ ...wanted({ a: true, b: true, c: true }), imported: [later, first] });
    expect(changes).toMatchObject([{ manifest: { spec: { instanceId: 'c', serviceId: 'of-the-name' } } }]);
  });

  test('a zone that is none any more is removed', () => {
    const { changes } = plan({ ...wanted({ a: true }), imported: [instance('a', { spec: { zone: 'z1' } })] });
    expect(changes).toMatchObject([{ patch: { spec: { zone: null } } }]);
  });

  test('a thousand are registered a few at a time', () => {
    const ids = Array.from({ length: 1000 }, (_, at) => [`pod-${at}`, true] as const);
    const { actions, requeueAfterMs } = plan({ ...wanted(Object.fromEntries(ids)), imported: [instance('pod-0')] });
    expect(actions).toHaveLength(50);
    expect(requeueAfterMs).toBe(0);
  });

  test.each([
    { sentence: 'who came first keeps it', createdAt: 1, expected: ['create shop.i.b'] },
    { sentence: 'who came later gives way', createdAt: 0, expected: ['delete shop.i.a', 'event NameTaken'] },
  ])('of two Services that took a name at once $sentence', ({ createdAt, expected }) => {
    const other = registration({ name: 'shop.i.x', from: 'other/shop', createdAt });
    const imported = [instance('a', { createdAt: createdAt === 1 ? 0 : 1 })];
    expect(plan({ ...wanted({ a: true, b: true }), imported, others: [other] }).actions).toEqual(expected);
  });
});
