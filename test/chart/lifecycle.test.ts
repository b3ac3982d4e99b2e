import { waitUntil } from '@rollcall/local/wait.ts';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { CHART, helm, NAMESPACE, RELEASE, type Values } from './chart.ts';
import { type ChartCluster, startChartCluster } from './cluster.ts';

// Helm is quick, but not where other things run.
vi.setConfig({ testTimeout: 240_000 });

// No pod runs here: what an installation does while it serves is proven on a real node.

let cluster: ChartCluster;

beforeAll(async () => {
  // The chart brings its own.
  cluster = await startChartCluster({ name: 'chart-lifecycle', customResources: false });
}, 300_000);

// What a test before, or the same one when it is tried again, has left.
beforeEach(() => run(['uninstall', RELEASE, '--ignore-not-found']));

afterAll(() => cluster[Symbol.asyncDispose]());

const run = (args: readonly string[], values?: Values) =>
  helm([...args, '--namespace', NAMESPACE], {
    kubeconfig: cluster.kubeconfig,
    ...(values === undefined ? {} : { values }),
  });
const install = (values: Values = {}) => run(['install', RELEASE, CHART], values);
const upgrade = (values: Values = {}) => run(['upgrade', RELEASE, CHART], values);
const uninstall = () => run(['uninstall', RELEASE]);

interface Listed {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly uid: string; readonly ownerReferences?: readonly object[] };
  readonly data?: Readonly<Record<string, string>>;
}

async function list(kinds: string): Promise<Listed[]> {
  const answer = await cluster.kubectl(['get', kinds, '--namespace', NAMESPACE, '--output=json']);
  return (JSON.parse(answer) as { items: Listed[] }).items;
}

async function passwords(): Promise<Record<string, Readonly<Record<string, string>> | undefined>> {
  const secrets = await list('secrets');
  const ours = secrets.filter(({ metadata }) => /^rollcall-(postgresql|redis)/.test(metadata.name));
  return Object.fromEntries(ours.map(({ metadata, data }) => [metadata.name, data]));
}

/** What is in a Secret that a process fills. */
async function filled(name: string): Promise<Listed['data']> {
  return (await list('secrets')).find(({ metadata }) => metadata.name === name)?.data;
}

async function fill(name: string, data: Readonly<Record<string, string>>): Promise<void> {
  const patch = ['patch', `secret/${name}`, '--namespace', NAMESPACE, '--type=merge'];
  await cluster.kubectl([...patch, `--patch=${JSON.stringify({ data })}`]);
}

/** Whether the namespace of the clients is there. */
async function hasClients(): Promise<boolean> {
  return (await cluster.kubectl(['get', 'namespace', 'rollcall-clients', '--ignore-not-found'])) !== '';
}

/** All that is in the namespace but for what Kubernetes puts into every one. */
async function leftovers(): Promise<string[]> {
  const kinds = await cluster.kubectl(['api-resources', '--namespaced', '--verbs=list', '--output=name']);
  const countable = kinds
    .trim()
    .split('\n')
    .filter((kind) => !/^events|metrics/.test(kind));
  const names = await cluster.kubectl(['get', countable.join(','), '--namespace', NAMESPACE, '--output=name']);
  const own = new Set(['configmap/kube-root-ca.crt', 'serviceaccount/default']);
  return names
    .split('\n')
    .filter((name) => name !== '' && !own.has(name))
    .toSorted();
}

async function definitions(): Promise<string[]> {
  return (await cluster.kubectl(['get', 'crd', '--output=name'])).split('\n').filter((name) => name !== '');
}

const ofRegistry = ['deployment/rollcall-registry', '--namespace', NAMESPACE];

function replicas(): Promise<string> {
  return cluster.kubectl(['get', ...ofRegistry, '--output=jsonpath={.spec.replicas}']);
}

function scaleTo(count: number): Promise<string> {
  return cluster.kubectl(['scale', ...ofRegistry, `--replicas=${count}`]);
}

function podAnnotations(): Promise<string> {
  return cluster.kubectl(['get', ...ofRegistry, '--output=jsonpath={.spec.template.metadata.annotations}']);
}

function withDatabase(password: string): Values {
  const url = `postgres://me:${password}@db.example.com/rollcall`;
  return { postgresql: { external: { urls: { registry: url, communication: url, payment: url, federation: url } } } };
}

const VAULT = 'rollcall-payment-vault';

const registration = JSON.stringify({
  apiVersion: 'rollcall.dev/v1alpha1',
  kind: 'ServiceRegistration',
  metadata: { name: 'shop', namespace: NAMESPACE },
  spec: { serviceName: 'shop', url: 'http://shop', source: 'Manifest' },
});

const apiClient = JSON.stringify({
  apiVersion: 'rollcall.dev/v1alpha1',
  kind: 'ApiClient',
  metadata: { name: 'shop', namespace: 'rollcall-clients' },
  spec: { clientId: 'shop', secretRef: { name: 'shop' } },
});

test('passwords are made once, and outlive a second installation; what processes keep outlives upgrades and rollbacks', async () => {
  // Without --logs: a pod that has succeeded is deleted before they could be read.
  expect(await install()).toMatch(/^ *helm test rollcall --namespace rollcall$/m);
  const first = await passwords();
  expect(Object.keys(first).toSorted()).toEqual(['rollcall-postgresql', 'rollcall-redis']);
  const [password = '', url = ''] = ['registry-password', 'registry-url'].map((key) =>
    Buffer.from(first['rollcall-postgresql']?.[key] ?? '', 'base64').toString(),
  );
  expect(password).toMatch(/^[A-Za-z0-9]{32}$/);
  expect(url).toBe(`postgres://registry:${password}@rollcall-postgresql:5432/rollcall`);
  const secretsOfWebhooks = { 'shop.1': Buffer.from('s3cret').toString('base64') };
  const keysOfGateway = { 'keys.json': Buffer.from('{}').toString('base64') };
  await fill('rollcall-webhooks', secretsOfWebhooks);
  await fill('rollcall-gateway-keys', keysOfGateway);
  const keysOfVault = await filled(VAULT);
  expect(keysOfVault).toHaveProperty(['keys.yaml']);
  const changes = [
    () => upgrade({ logLevel: 'debug' }),
    () => upgrade({ payment: { vault: { existingSecret: 'mine' } } }),
    () => run(['rollback', RELEASE, '1']),
  ];
  for (const change of changes) {
    await change();
    expect(await passwords()).toEqual(first);
    expect(await filled('rollcall-webhooks')).toEqual(secretsOfWebhooks);
    expect(await filled('rollcall-gateway-keys')).toEqual(keysOfGateway);
    expect(await filled(VAULT)).toEqual(keysOfVault);
  }
  await uninstall();
  await waitUntil('everything else is gone', async () => (await leftovers()).length <= 5, { timeoutMs: 60_000 });
  expect(await filled('rollcall-webhooks')).toEqual(secretsOfWebhooks);
  await install();
  expect((await passwords())['rollcall-postgresql']).toEqual(first['rollcall-postgresql']);
  expect(await filled('rollcall-webhooks')).toEqual(secretsOfWebhooks);
  expect(await filled(VAULT)).toEqual(keysOfVault);
  // They go with the release.
  expect(await filled('rollcall-gateway-keys')).toBeUndefined();
});

test('the password of a volume from before services had roles stays, and the services get theirs', async () => {
  await install();
  const { password = '' } = (await passwords())['rollcall-postgresql'] ?? {};
  await run(['uninstall', RELEASE]);
  const old = {
    password,
    url: Buffer.from('postgres://rollcall:old@rollcall-postgresql:5432/rollcall').toString('base64'),
  };
  const secret = ['secret/rollcall-postgresql', '--namespace', NAMESPACE];
  await cluster.kubectl([
    'patch',
    ...secret,
    '--type=json',
    `--patch=${JSON.stringify([{ op: 'replace', path: '/data', value: old }])}`,
  ]);
  await install();
  const data = (await passwords())['rollcall-postgresql'] ?? {};
  expect(data['password']).toBe(password);
  expect(Buffer.from(data['registry-password'] ?? '', 'base64').toString()).toMatch(/^[A-Za-z0-9]{32}$/);
});

test('the password of the volume is found again after a time with another database', async () => {
  await install();
  const first = await passwords();
  await upgrade({
    ...withDatabase('word'),
    redis: { external: { url: 'redis://:word@cache.example.com' } },
  });
  const meanwhile = await passwords();
  expect(Object.keys(meanwhile).toSorted()).toEqual([
    'rollcall-postgresql',
    'rollcall-postgresql-external',
    'rollcall-redis-external',
  ]);
  expect(meanwhile['rollcall-postgresql']).toEqual(first['rollcall-postgresql']);
  // Without any value Helm would take those of before.
  await upgrade({ logLevel: 'info' });
  const last = await passwords();
  expect(Object.keys(last).toSorted()).toEqual(['rollcall-postgresql', 'rollcall-redis']);
  expect(last['rollcall-postgresql']).toEqual(first['rollcall-postgresql']);
});

test('pods start anew for another URL of a database, and for no other change', async () => {
  await install(withDatabase('one'));
  const first = await podAnnotations();
  expect(first).toContain('rollcall.dev/postgresql-url-version');
  await upgrade({ ...withDatabase('one'), commonLabels: { some: 'label' } });
  expect(await podAnnotations()).toBe(first);
  await upgrade(withDatabase('two'));
  const second = await podAnnotations();
  expect(second).not.toBe(first);
  // Helm applies what was rendered then, Secret and pods alike.
  await run(['rollback', RELEASE, '1']);
  expect(await podAnnotations()).toBe(first);
  await upgrade(withDatabase('one'));
  expect(await podAnnotations()).toBe(first);
});

test('no pod ends because autoscaling begins, nor at an upgrade or a rollback while it goes on', async () => {
  const scaled = { replicas: 3, autoscaling: { enabled: true } };
  await install({ processes: { registry: { replicas: 3 } } });
  expect(await replicas()).toBe('3');
  await upgrade({ processes: { registry: scaled } });
  expect(await replicas()).toBe('3');
  for (const count of [5, 4]) {
    // As the autoscaler does.
    await scaleTo(count);
    await upgrade({ commonLabels: { count: String(count) }, processes: { registry: scaled } });
    expect(await replicas()).toBe(String(count));
  }
  await scaleTo(6);
  await run(['rollback', RELEASE]);
  expect(await replicas()).toBe('6');
});

test('an upgrade brings the definitions up to date and keeps what is registered', async () => {
  await install();
  await waitUntil('the definitions are served', async () => (await definitions()).length === 5, { timeoutMs: 60_000 });
  await cluster.kubectl(['wait', '--for=condition=Established', '--timeout=60s', 'crd', '--all']);
  await cluster.kubectl(['apply', '--filename=-'], { stdin: registration });
  const [before] = await list('serviceregistrations');
  // As an older chart had them.
  const printed = ['get', 'crd', 'serviceregistrations.rollcall.dev', '--output=jsonpath={.spec.names.shortNames}'];
  expect(await cluster.kubectl(printed)).toBe('["sreg"]');
  const older = JSON.stringify({ spec: { names: { shortNames: [] } } });
  await cluster.kubectl(['patch', 'crd', 'serviceregistrations.rollcall.dev', '--type=merge', `--patch=${older}`]);
  expect(await cluster.kubectl(printed)).not.toContain('sreg');
  await upgrade({ logLevel: 'warn' });
  expect(await cluster.kubectl(printed)).toBe('["sreg"]');
  const [after] = await list('serviceregistrations');
  expect(after?.metadata.uid).toBe(before?.metadata.uid);
});

test('uninstalling leaves the definitions, what is registered, the clients, the volume, its password and the keys', async () => {
  await install();
  await cluster.kubectl(['wait', '--for=condition=Established', '--timeout=60s', 'crd', '--all']);
  await cluster.kubectl(['apply', '--filename=-'], { stdin: registration });
  await cluster.kubectl(['apply', '--filename=-'], { stdin: apiClient });
  await waitUntil('the claim of PostgreSQL is there', async () => (await list('persistentvolumeclaims')).length === 1, {
    timeoutMs: 60_000,
  });
  await uninstall();
  await expect
    .poll(leftovers, { timeout: 60_000, interval: 500 })
    .toEqual([
      'persistentvolumeclaim/data-rollcall-postgresql-0',
      'secret/rollcall-communication-vault',
      'secret/rollcall-payment-vault',
      'secret/rollcall-postgresql',
      'secret/rollcall-webhooks',
      'serviceregistration.rollcall.dev/shop',
    ]);
  expect(await definitions()).toHaveLength(5);
  const clients = ['get', 'apiclients', '--namespace=rollcall-clients', '--output=name'];
  expect((await cluster.kubectl(clients)).trim()).toBe(
    ['rollcall-federation', 'rollcall-payment', 'shop'].map((name) => `apiclient.rollcall.dev/${name}`).join('\n'),
  );
});

test('uninstalling leaves nothing where the values say so', async () => {
  await install({ crds: { keep: false }, postgresql: { persistence: { keep: false } } });
  await waitUntil(
    'the claim of PostgreSQL belongs to its StatefulSet',
    async () => (await list('persistentvolumeclaims')).some(({ metadata }) => metadata.ownerReferences?.length === 1),
    { timeoutMs: 60_000 },
  );
  await uninstall();
  await expect.poll(definitions, { timeout: 60_000, interval: 500 }).toEqual([]);
  await expect.poll(leftovers, { timeout: 60_000, interval: 500 }).toEqual([]);
  await expect.poll(hasClients, { timeout: 60_000, interval: 500 }).toBe(false);
  const wide = await cluster.kubectl(['get', 'clusterrole,clusterrolebinding', '--output=name']);
  expect(wide).not.toContain('rollcall');
});
