import { expect, test } from 'vitest';
import { rulesetOf } from './network-policies.ts';
import type { Namespace, NetworkPolicy, PolicyPod } from './policy-objects.ts';

type Labels = Readonly<Record<string, string>>;
type Spec = NetworkPolicy['spec'];

const namespaces = [namespace('shop', { team: 'a' }), namespace('web', { team: 'b' }), namespace('ops', {})];
const api = pod('shop/api', '10.244.0.1', { ports: [{ name: 'http', containerPort: 8080 }] });
const database = pod('shop/database', '10.244.0.2');
const front = pod('web/front', '10.244.0.3', { ports: [{ name: 'http', containerPort: 80 }] });
const prometheus = pod('ops/prometheus', '10.244.0.4');
const everything = [api, database, front, prometheus];

function namespace(name: string, labels: Labels): Namespace {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } };
}

interface PodFields {
  readonly ports?: PolicyPod['spec']['containers'][number]['ports'];
  readonly spec?: Partial<PolicyPod['spec']>;
  readonly phase?: string;
}

/** @param key `<namespace>/<name>`; the name is its label `app`, too. */
function pod(key: string, podIP: string, { ports = [], spec = {}, phase = 'Running' }: PodFields = {}) {
  const [where = '', app = ''] = key.split('/');
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: app, namespace: where, labels: { app } },
    spec: { containers: [{ ports }], ...spec },
    status: { phase, podIP },
  } as const satisfies PolicyPod;
}

/** For the pods of a label in the namespace shop. */
function policy(app: string | undefined, spec: Omit<Spec, 'podSelector'>): NetworkPolicy {
  const podSelector = app === undefined ? {} : { matchLabels: { app } };
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'policy', namespace: 'shop' },
    spec: { podSelector, ...spec },
  };
}

/** The rules of each chain but the hooks', without what all have. */
function chains(policies: readonly NetworkPolicy[], pods: readonly PolicyPod[] = everything): Record<string, string[]> {
  const [, ...blocks] = rulesetOf({ policies, pods, namespaces }).split('\n  chain ');
  const found = blocks.flatMap((block) => {
    const [name = '', ...lines] = block.split('\n').map((line) => line.trim());
    if (name.startsWith('forward') || name.startsWith('input')) return [];
    const rules = lines.slice(0, lines.indexOf('}'));
    expect(rules.shift()).toMatch(/^ip saddr (\S+) ip daddr \1 return$/);
    expect(rules.pop()).toBe('drop');
    return [[name.replace(' {', ''), rules] as const];
  });
  return Object.fromEntries(found);
}

const peers: readonly (readonly [string, readonly object[] | undefined, readonly string[]])[] = [
  ['nobody in particular', undefined, ['return']],
  ['an empty list', [], ['return']],
  [
    'pods of the same namespace',
    [{ podSelector: { matchLabels: { app: 'database' } } }],
    ['ip saddr { 10.244.0.2 } return'],
  ],
  ['all pods of the same namespace', [{ podSelector: {} }], ['ip saddr { 10.244.0.1, 10.244.0.2 } return']],
  ['namespaces', [{ namespaceSelector: { matchLabels: { team: 'b' } } }], ['ip saddr { 10.244.0.3 } return']],
  [
    'all namespaces',
    [{ namespaceSelector: {} }],
    ['ip saddr { 10.244.0.1, 10.244.0.2, 10.244.0.3, 10.244.0.4 } return'],
  ],
  [
    'pods of namespaces',
    [{ namespaceSelector: {}, podSelector: { matchLabels: { app: 'prometheus' } } }],
    ['ip saddr { 10.244.0.4 } return'],
  ],
  ['pods that there are not', [{ podSelector: { matchLabels: { app: 'other' } } }], []],
  ['a block', [{ ipBlock: { cidr: '10.0.0.0/8' } }], ['ip saddr { 10.0.0.0/8 } return']],
  [
    'a block less others',
    [{ ipBlock: { cidr: '0.0.0.0/0', except: ['10.0.0.0/8', '10.1.0.0/16'] } }],
    ['ip saddr { 0.0.0.0/0 } ip saddr != 10.0.0.0/8 ip saddr != 10.1.0.0/16 return'],
  ],
  ['a block of IPv6', [{ ipBlock: { cidr: '::/0', except: ['fe80::/10'] } }], []],
  [
    'several',
    [{ podSelector: { matchLabels: { app: 'database' } } }, { ipBlock: { cidr: '192.0.2.0/24' } }],
    ['ip saddr { 10.244.0.2 } return', 'ip saddr { 192.0.2.0/24 } return'],
  ],
];

test.each(peers)('from %s', (_, from, rules) => {
  const ingress = [from === undefined ? {} : { from }];
  expect(chains([policy('api', { policyTypes: ['Ingress'], ingress })])).toEqual({ 'ingress-10-244-0-1': rules });
});

const expressions: readonly (readonly [object, readonly string[]])[] = [
  [{ key: 'app', operator: 'In', values: ['api', 'front'] }, ['10.244.0.1', '10.244.0.3']],
  [{ key: 'app', operator: 'NotIn', values: ['api', 'front'] }, ['10.244.0.2', '10.244.0.4']],
  [{ key: 'app', operator: 'Exists' }, ['10.244.0.1', '10.244.0.2', '10.244.0.3', '10.244.0.4']],
  [{ key: 'tier', operator: 'NotIn', values: ['x'] }, ['10.244.0.1', '10.244.0.2', '10.244.0.3', '10.244.0.4']],
  [{ key: 'app', operator: 'DoesNotExist' }, []],
];

test.each(expressions)('an expression %o', (expression, addresses) => {
  const podSelector = { matchExpressions: [expression] } as Spec['podSelector'];
  const ingress = [{ from: [{ namespaceSelector: {}, podSelector }] }];
  const rules = addresses.length === 0 ? [] : [`ip saddr { ${addresses.join(', ')} } return`];
  expect(chains([policy('api', { policyTypes: ['Ingress'], ingress })])).toEqual({ 'ingress-10-244-0-1': rules });
});

const ports: readonly (readonly [string, readonly object[] | undefined, readonly string[]])[] = [
  ['none', undefined, ['return']],
  ['an empty list', [], ['return']],
  ['a number', [{ port: 80 }], ['tcp dport 80 return']],
  ['a range', [{ port: 80, endPort: 90, protocol: 'TCP' }], ['tcp dport 80-90 return']],
  ['a protocol', [{ protocol: 'UDP' }], ['meta l4proto udp return']],
  ['several', [{ port: 53, protocol: 'UDP' }, { port: 53 }], ['udp dport 53 return', 'tcp dport 53 return']],
  ['a name of the pod', [{ port: 'http' }], ['tcp dport 8080 return']],
  ['a name of another protocol', [{ port: 'http', protocol: 'UDP' }], []],
  ['a name that it has not', [{ port: 'grpc' }], []],
];

test.each(ports)('ports: %s', (_, given, rules) => {
  const ingress = [given === undefined ? {} : { ports: given }];
  expect(chains([policy('api', { policyTypes: ['Ingress'], ingress })])).toEqual({ 'ingress-10-244-0-1': rules });
});

test('a name of a port means to each destination what it calls so', () => {
  const sidecar = { restartPolicy: 'Always', ports: [{ name: 'http', containerPort: 15000 }] };
  const meshed = pod('web/meshed', '10.244.0.9', { spec: { containers: [{}], initContainers: [sidecar] } });
  const egress = [{ to: [{ namespaceSelector: {} }, { ipBlock: { cidr: '10.0.0.0/8' } }], ports: [{ port: 'http' }] }];
  expect(chains([policy('database', { policyTypes: ['Egress'], egress })], [...everything, meshed])).toEqual({
    'egress-10-244-0-2': [
      'ip daddr { 10.244.0.1 } tcp dport 8080 return',
      'ip daddr { 10.244.0.3 } tcp dport 80 return',
      'ip daddr { 10.244.0.9 } tcp dport 15000 return',
    ],
  });
});

test('a policy without rules denies all in the directions that it names', () => {
  expect(chains([policy(undefined, { policyTypes: ['Ingress', 'Egress'] })])).toEqual({
    'ingress-10-244-0-1': [],
    'ingress-10-244-0-2': [],
    'egress-10-244-0-1': [],
    'egress-10-244-0-2': [],
  });
  expect(chains([policy('api', { policyTypes: ['Egress'] })])).toEqual({ 'egress-10-244-0-1': [] });
});

test('directions that are not named are those that there are rules for, and always ingress', () => {
  expect(Object.keys(chains([policy('api', {})]))).toEqual(['ingress-10-244-0-1']);
  expect(Object.keys(chains([policy('api', { egress: [] })]))).toEqual(['ingress-10-244-0-1']);
  expect(Object.keys(chains([policy('api', { egress: [{}] })]))).toEqual(['ingress-10-244-0-1', 'egress-10-244-0-1']);
});

test('what any of several policies allows is allowed, once', () => {
  const policies = [80, 81, 80].map((port) =>
    policy('api', { policyTypes: ['Ingress'], ingress: [{ ports: [{ port }] }] }),
  );
  const rules = ['tcp dport 80 return', 'tcp dport 81 return'];
  expect(chains(policies)).toEqual({ 'ingress-10-244-0-1': rules });
});

test('pods in the network of the node, without an address, or at their end are none', () => {
  const { status: _, ...starting } = pod('shop/api', '');
  const others = [
    pod('shop/api', '10.203.0.2', { spec: { hostNetwork: true } }),
    pod('shop/api', '10.244.0.7', { phase: 'Succeeded' }),
    pod('shop/api', '10.244.0.8', { phase: 'Failed' }),
    starting,
  ];
  expect(chains([policy(undefined, { policyTypes: ['Ingress'] })], others)).toEqual({});
});

test('the table is replaced as a whole, and lets go on what has been accepted', () => {
  const policies = [policy('api', { policyTypes: ['Ingress', 'Egress'] })];
  expect(rulesetOf({ policies, pods: everything, namespaces })).toBe(`table inet network-policies
delete table inet network-policies
table inet network-policies {
  chain ingress-10-244-0-1 {
    ip saddr 10.244.0.1 ip daddr 10.244.0.1 return
    drop
  }
  chain egress-10-244-0-1 {
    ip saddr 10.244.0.1 ip daddr 10.244.0.1 return
    drop
  }
  chain forward {
    type filter hook forward priority -5; policy accept;
    ct state established,related accept
    ip saddr vmap { 10.244.0.1 : jump egress-10-244-0-1 }
    ip daddr vmap { 10.244.0.1 : jump ingress-10-244-0-1 }
  }
  chain input {
    type filter hook input priority -5; policy accept;
    ct state established,related accept
    ip saddr vmap { 10.244.0.1 : jump egress-10-244-0-1 }
  }
}
`);
});
