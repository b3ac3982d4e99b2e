import { objectNameFor } from '@rollcall/crds/kinds.ts';
import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import { expect, test } from 'vitest';
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
}

function registration({
  name = 'shop',
  from = 'team/shop',
  phase = 'Registered',
  leaving = false,
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
    ready: true,
    imported: [],
    holder: undefined,
    namespace: 'registry',
    ...overrides,
  });
  const changes = decision.changes.map((change) => {
    if (change.action === 'event') return `event ${change.reason}`;
    return `${change.action} ${change.action === 'create' ? change.manifest.metadata.name : change.object.metadata.name}`;
  });
  return { ...decision, actions: changes };
}

const own = registration();
const held = (holder: ServiceRegistration) => ({ holder, imported: [holder] });

test.each<{ sentence: string; snapshot: Partial<ImportSnapshot>; expected: string[] }>([
  {
    sentence: 'a word that is not understood ends the registration and is reported',
    snapshot: { ...held(own), desired: { wanted: 'nothing', fault: 'register must be "true" or "false"' } },
    expected: ['delete shop', 'event InvalidRegistration'],
  },
  { sentence: 'a Service without a registration gets one', snapshot: {}, expected: ['create shop'] },
  { sentence: 'even before an endpoint is ready', snapshot: { ready: false }, expected: ['create shop'] },
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
    snapshot: { ...held(registration({ phase: 'Expired' })), ready: false },
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
  const { actions, changes, requeueAfterMs } = plan({ holder });
  expect(actions).toEqual(['event NameTaken']);
  expect(changes[0]).toMatchObject({ type: 'Warning', message: expect.stringContaining(`(${by})`) });
  expect(requeueAfterMs).toBeGreaterThan(0);
});

test('what it creates says where it came from and needs no heartbeats', () => {
  const desired = { wanted: 'registration', spec: { ...spec, serviceName: 'Shop EU' } } as const;
  expect(plan({ desired }).changes[0]).toMatchObject({
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
