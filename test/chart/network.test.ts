import { expect, test } from 'vitest';
import { objectOf, podsOf, renderChart, type Values } from './chart.ts';

type Labels = Readonly<Record<string, string>>;

interface Peer {
  readonly podSelector?: { readonly matchLabels?: Labels };
  readonly namespaceSelector?: { readonly matchLabels?: Labels };
}

interface Rule {
  readonly ports: readonly { readonly port: number }[];
  /** Absent: anyone. */
  readonly from?: readonly Peer[];
}

interface Policy {
  readonly podSelector: { readonly matchLabels: Labels };
  readonly policyTypes: readonly string[];
  /** Null: nobody. */
  readonly ingress?: readonly Rule[] | null;
  readonly egress?: readonly { readonly ports?: readonly { readonly port: number }[] }[];
}

function matches(labels: Labels, wanted: Labels = {}): boolean {
  return Object.entries(wanted).every(([key, value]) => labels[key] === value);
}

function componentOf(labels: Labels): string {
  return labels['app.kubernetes.io/component'] ?? '';
}

function comersOf({ from }: Rule, pods: readonly Labels[]): string[] {
  if (from === undefined) return ['anyone'];
  const comers = from.flatMap(({ podSelector, namespaceSelector }) =>
    namespaceSelector === undefined
      ? pods.filter((pod) => matches(pod, podSelector?.matchLabels)).map(componentOf)
      : [`namespace ${JSON.stringify(namespaceSelector.matchLabels ?? {})}`],
  );
  return comers.toSorted();
}

/**
 * Who may connect to each port of each component: those of the release, and others as the policies
 * name them.
 */
async function admitted(values: Values = {}): Promise<Record<string, readonly string[]>> {
  const objects = await renderChart(values);
  const pods = podsOf(objects).map(({ template }) => template.metadata.labels);
  const policies = objects.filter(({ kind }) => kind === 'NetworkPolicy').map(({ spec }) => spec as Policy);
  const result: Record<string, readonly string[]> = {};
  for (const pod of pods) {
    const guards = policies.filter(({ podSelector }) => matches(pod, podSelector.matchLabels));
    const rules = guards.flatMap(({ ingress }) => ingress ?? []);
    // A pod that no policy selects is open to all.
    if (guards.length === 0) result[componentOf(pod)] = ['anyone'];
    for (const { policyTypes } of guards) expect(policyTypes).toEqual(['Ingress', 'Egress']);
    for (const rule of rules) result[`${componentOf(pod)}:${rule.ports[0]?.port}`] = comersOf(rule, pods);
  }
  return result;
}

const own = [
  'communication',
  'federation',
  'gateway',
  'namespace {"kubernetes.io/metadata.name":"rollcall"}',
  'payment',
  'test',
];
const prometheus = ['namespace {"kubernetes.io/metadata.name":"monitoring"}'];

test('programs reach the registry and the gateway, Prometheus the admin ports, and the databases are for those that use them', async () => {
  expect(await admitted()).toEqual({
    // It listens on nothing.
    test: ['anyone'],
    'operator:9090': prometheus,
    'registry:3001': own,
    'registry:50051': own,
    'registry:9090': prometheus,
    'gateway:3000': ['anyone'],
    'gateway:50051': ['anyone'],
    'gateway:9090': prometheus,
    'communication:3003': ['federation', 'gateway', 'test'],
    'communication:9090': prometheus,
    'payment:3004': ['federation', 'gateway', 'test'],
    'payment:9090': prometheus,
    'federation:3002': ['gateway', 'test'],
    'federation:9090': prometheus,
    'postgresql:5432': ['communication', 'federation', 'payment', 'registry'],
    'redis:6379': ['communication', 'gateway', 'test'],
  });
});

const name = (namespace: string) => `namespace {"kubernetes.io/metadata.name":"${namespace}"}`;

test('pods of the namespaces that are named reach the registry, or those of all', async () => {
  const named = await admitted({ registry: { namespaces: ['shop', 'rollcall'] } });
  expect(named['registry:3001']).toEqual([
    'communication',
    'federation',
    'gateway',
    name('rollcall'),
    name('shop'),
    'payment',
    'test',
  ]);
  expect(named['registry:50051']).toEqual(named['registry:3001']);
  const all = await admitted({ registry: { namespaces: ['*'] } });
  expect(all['registry:3001']).toEqual(['communication', 'federation', 'gateway', 'namespace {}', 'payment', 'test']);
  const http = { port: 3001, from: 'anywhere' };
  const anybody = await admitted({ processes: { registry: { ports: { http } } } });
  expect([anybody['registry:3001'], anybody['registry:50051']]).toEqual([['anyone'], ['anyone']]);
});

test('ports can be closed to all but some, and to all but those that need them', async () => {
  const from = [{ podSelector: { matchLabels: { 'app.kubernetes.io/component': 'operator' } } }];
  const values = {
    networkPolicy: { metrics: { from: [] } },
    processes: { registry: { ports: { http: { port: 3001, from } }, redis: true } },
  };
  expect(await admitted(values)).toEqual({
    test: ['anyone'],
    'registry:3001': ['communication', 'federation', 'gateway', 'operator', 'payment', 'test'],
    'registry:50051': ['communication', 'federation', 'gateway', 'operator', 'payment', 'test'],
    'gateway:3000': ['anyone'],
    'gateway:50051': ['anyone'],
    'communication:3003': ['federation', 'gateway', 'test'],
    'payment:3004': ['federation', 'gateway', 'test'],
    'federation:3002': ['gateway', 'test'],
    'postgresql:5432': ['communication', 'federation', 'payment', 'registry'],
    'redis:6379': ['communication', 'gateway', 'registry', 'test'],
  });
});

test('what talks to the API server may do so wherever that is, also where "anywhere" stands for no node', async () => {
  const values = { processes: { mailer: { egress: 'anywhere' } } };
  const egress = async (name: string, more: Values = {}) => {
    const policy = objectOf(await renderChart({ ...values, ...more }), 'NetworkPolicy', `rollcall-${name}`);
    return (policy['spec'] as Policy).egress;
  };
  const ports = [443, 6443].map((port) => ({ port, protocol: 'TCP' }));
  for (const name of ['operator', 'registry', 'gateway']) {
    expect(await egress(name)).toContainEqual({ ports });
    const to = [{ ipBlock: { cidr: '10.0.0.1/32' } }];
    const named = await egress(name, { networkPolicy: { apiServer: { cidrs: ['10.0.0.1/32'] } } });
    expect(named).toContainEqual({ ports, to });
    expect(named).not.toContainEqual({ ports });
  }
  expect(await egress('mailer')).not.toContainEqual({ ports });
});

test('embedded databases connect to nothing, and a process only to what it needs', async () => {
  const rbac = { own: { scope: 'release', rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }] } };
  const processes = { console: { database: true }, reporting: { redis: true, calls: ['registry'], rbac } };
  const objects = await renderChart({ processes });
  const egress = (name: string) => {
    const rules = (objectOf(objects, 'NetworkPolicy', name)['spec'] as Policy).egress ?? [];
    return rules.map(({ ports = [] }) => ports.map(({ port }) => port));
  };
  expect(egress('rollcall-postgresql')).toEqual([]);
  expect(egress('rollcall-redis')).toEqual([]);
  const dns = [53, 53];
  const apiServer = [443, 6443];
  expect(egress('rollcall-console')).toEqual([dns, [5432]]);
  expect(egress('rollcall-reporting')).toEqual([dns, apiServer, [50_051, 3001], [6379]]);
});

async function egressPorts(name: string, values: Values = {}): Promise<number[][]> {
  const policy = objectOf(await renderChart(values), 'NetworkPolicy', `rollcall-${name}`)['spec'] as Policy;
  return (policy.egress ?? []).map(({ ports = [] }) => ports.map(({ port }) => port));
}

test('communication and payment reach providers at their ports alone, what they call and their databases', async () => {
  const called = [
    [50_051, 3001],
    [50_051, 3000],
  ];
  expect(await egressPorts('communication')).toEqual([[53, 53], [443, 465, 587, 2775], ...called, [5432], [6379]]);
  expect(await egressPorts('payment')).toEqual([[53, 53], [443], ...called, [5432]]);
  const relay = { processes: { communication: { egressPorts: [25] } } };
  expect(await egressPorts('communication', relay)).toEqual([[53, 53], [25], ...called, [5432], [6379]]);
  const open = { processes: { payment: { egressPorts: [] } } };
  expect(await egressPorts('payment', open)).toEqual([[53, 53], []]);
});

test('federation reaches services wherever they are', async () => {
  expect(await egressPorts('federation')).toEqual([[53, 53], []]);
});
