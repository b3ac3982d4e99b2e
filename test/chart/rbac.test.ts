import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { deliveryJobKind, labels, serviceRegistrationKind } from '@rollcall/crds/kinds.ts';
import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import { createKeyStore } from '@rollcall/gateway/identity/key-store.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { deleteState } from '@rollcall/operator/delivery/job/saved-state.ts';
import { createDirectReads } from '@rollcall/operator/delivery/observe/direct-reads.ts';
import { createApplier, StaleError } from '@rollcall/operator/runtime/apply.ts';
import { createEventRecorder } from '@rollcall/operator/runtime/events.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import {
  deploymentKind,
  endpointSliceKind,
  httpRouteKind,
  leaseKind,
  type Secret,
  secretKind,
  serviceKind,
} from '@rollcall/platform/kube/builtin-kinds.ts';
import { connectByFile, type KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { KubeApiError } from '@rollcall/platform/kube/errors.ts';
import { collectionPath, type KubeObject, resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createWebhookSecrets } from '@rollcall/registry/webhooks/store/webhook-secrets.ts';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { connectionOptions, readCluster, writeKubeconfig } from '../kube/fixtures.ts';
import { createDatabase } from '../support/postgres.ts';
import { startReadyReplica } from '../support/replica.ts';
import { type ChartObject, environmentOf, NAMESPACE, renderChart } from './chart.ts';
import { type ChartCluster, startChartCluster } from './cluster.ts';
import { CLIENTS_NAMESPACE, GATEWAY_KEYS, rotateKeys, useClients } from './gateway-usage.ts';
import {
  covers,
  describeRight,
  describeUse,
  isBinding,
  isRole,
  type Right,
  readUses,
  rightsOf,
  rulesOf,
  type Use,
} from './rights.ts';
import {
  DELIVERY_NAMESPACE,
  DNS_NAMESPACE,
  IMPORT_NAMESPACE,
  useDeliveries,
  useDns,
  useImports,
  useRegistrations,
  useWebhooks,
} from './usage.ts';

const OPERATOR = 'rollcall-operator';
const REGISTRY = 'rollcall-registry';
const GATEWAY = 'rollcall-gateway';
const WEBHOOK_SECRETS = 'rollcall-webhooks';

/**
 * Delivery, import, DNS, clients and the custom resources each in a namespace of their own, so that no
 * role makes up for another.
 */
const values = {
  delivery: { namespaces: [DELIVERY_NAMESPACE] },
  import: { namespaces: [IMPORT_NAMESPACE] },
  dns: { enabled: true },
  registry: { authentication: { audience: 'api-server' } },
};

/**
 * Asked for where it may be refused: only to say where a Deployment is that may not be delivered
 * to.
 */
const tolerated = 'rollcall-operator in *: list deployments.apps';

const resources = new AsyncDisposableStack();
let cluster: ChartCluster;
let admin: KubeConnection;
let objects: readonly ChartObject[];
let rights: readonly Right[];
let uses: readonly Use[];
const kubeconfigs: Record<string, string> = {};

beforeAll(async () => {
  cluster = resources.use(
    await startChartCluster({
      name: 'chart-rbac',
      namespaces: [DELIVERY_NAMESPACE, IMPORT_NAMESPACE, DNS_NAMESPACE, CLIENTS_NAMESPACE],
      crds: ['gateway-api'],
      workloads: true,
      isAudited: true,
    }),
  );
  admin = await connectByFile(cluster.kubeconfig, connectionOptions);
  resources.defer(() => admin.close());
  objects = await renderChart(values);
  rights = rightsOf(objects);
  const kinds = ['ServiceAccount', 'Secret', 'ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'];
  await applyAll(objects.filter((object) => isRole(object) || isBinding(object) || kinds.includes(object.kind)));
  const { cluster: server } = await readCluster(cluster.kubeconfig);
  // An operator that was killed had it counted.
  const quotas = objects.filter(({ kind }) => kind === 'ResourceQuota');
  await applyAll(quotas.map((quota) => ({ ...quota, spec: { hard: { 'count/recount.rollcall.dev': '0' } } })));
  for (const { metadata } of objects.filter(({ kind }) => kind === 'ServiceAccount')) {
    const account = metadata.name;
    kubeconfigs[account] = await writeKubeconfig({
      cluster: server,
      user: { token: await tokenOf(account, NAMESPACE) },
    });
  }
  await use();
  const usual = await readUses(cluster.auditLog, NAMESPACE);
  await useSeldom();
  const seldom = await readUses(cluster.auditLog, NAMESPACE);
  // The rest of it was chosen here, and proves nothing.
  uses = [
    ...usual,
    ...seldom.filter(({ verb, resource }) => verb === 'get' || /^(events|controllerrev)/.test(resource)),
  ];
}, 600_000);

afterAll(() => resources.disposeAsync());

async function applyAll(items: readonly object[]): Promise<void> {
  const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  await cluster.kubectl(['apply', '--server-side', '--filename=-'], { stdin });
}

async function tokenOf(account: string, namespace: string): Promise<string> {
  return (await cluster.kubectl(['create', 'token', account, '--namespace', namespace])).trim();
}

/**
 * Starts the real processes, with the environment that the chart gives them, and makes them do all
 * that they can do.
 */
async function use(): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const database = stack.use(await createDatabase());
  const start = async (account: string, script: string, settings: Readonly<Record<string, string>>) => {
    // Ports are free ones, and the URL of the database is in a Secret.
    const given = Object.entries(environmentOf(objects, account)).flatMap(([name, value]) =>
      typeof value === 'string' && !name.endsWith('_PORT') ? [[name, value] as const] : [],
    );
    return stack.use(
      await startReadyReplica(script, {
        logDirectory: join(inject('temporaryDirectory'), 'chart-rbac'),
        access: { KUBECONFIG: kubeconfigs[account] ?? '' },
        namespace: NAMESPACE,
        settings: { ...Object.fromEntries(given), ...settings },
      }),
    );
  };
  const operator = start(OPERATOR, 'operator/src/main.ts', { ROLLCALL_RETENTION_SECONDS: '1' });
  const registry = await start(REGISTRY, 'services/registry/src/main.ts', {
    ROLLCALL_DATABASE_URL: database.url,
    ROLLCALL_TTL_SECONDS: '5',
    ROLLCALL_JOB_RETENTION_SECONDS: '0',
  });
  await operator;
  const gateway = await start(GATEWAY, 'services/gateway/src/main.ts', {
    ROLLCALL_REGISTRY_URLS: registry.url,
    ROLLCALL_TOKEN_FILE: await temporaryFile('token', await tokenOf(GATEWAY, NAMESPACE)),
    ROLLCALL_ROUTES_FILE: await temporaryFile('routes.yaml', 'routes: []'),
  });
  const installation = { cluster, api: registry.url, token: await tokenOf('default', DELIVERY_NAMESPACE) };
  await useWebhooks(installation);
  await Promise.all([
    useRegistrations(installation),
    useImports(installation),
    useDns(installation),
    useDeliveries(installation),
    useClients({ cluster, url: gateway.url }),
    rotateKeys({ cluster, url: gateway.url }),
  ]);
}

/** A file that the chart would have mounted. @returns its path. */
async function temporaryFile(name: string, content: string): Promise<string> {
  const file = join(inject('temporaryDirectory'), 'chart-rbac', name);
  await writeFile(file, content);
  return file;
}

/**
 * What the operator does only when somebody else writes at the same moment, or says the same twice:
 * by its own code and its own account, without waiting for such a moment.
 */
async function useSeldom(): Promise<void> {
  const connection = await connectByFile(kubeconfigs[OPERATOR] ?? '', connectionOptions);
  const events = createEventRecorder({
    connection,
    clock: systemClock,
    log: createLogger('test', 'silent'),
    component: OPERATOR,
    host: 'test',
    onDropped: () => undefined,
  });
  const heard = { recordWrite: () => undefined, recordDelete: () => undefined };
  const kinds: readonly (readonly [ResourceKind<KubeObject>, string])[] = [
    [serviceRegistrationKind, NAMESPACE],
    [leaseKind, NAMESPACE],
    [deliveryJobKind, NAMESPACE],
    [deploymentKind, DELIVERY_NAMESPACE],
    [serviceKind, DELIVERY_NAMESPACE],
    [serviceKind, DNS_NAMESPACE],
    [endpointSliceKind, DNS_NAMESPACE],
    [httpRouteKind, DELIVERY_NAMESPACE],
  ];
  const caches = kinds.map(([kind]) => ({ kind, informer: heard }));
  const applier = createApplier({ connection, fieldManager: OPERATOR, caches, events });
  await applyAll(kinds.map(([kind, namespace]) => minimal(kind, namespace)));
  for (const [kind, namespace] of kinds) {
    const object = await resourceClient(admin, kind, namespace).get('seldom');
    const outdated = { ...object, metadata: { ...object.metadata, uid: '00000000-0000-0000-0000-000000000000' } };
    const change =
      kind === leaseKind
        ? ({ action: 'delete', kind, object: outdated } as const)
        : ({ action: 'patch', kind, object: outdated, patch: { metadata: { labels: { a: 'b' } } } } as const);
    await expect(applier.apply(change)).rejects.toThrow(StaleError);
  }
  const job = await resourceClient(admin, deliveryJobKind, NAMESPACE).get('seldom');
  await applier.apply(deleteState(job satisfies DeliveryJob));
  // As an operator does that finds a job under way when it begins to lead.
  await createDirectReads(connection).findRevision(job);
  await events.start();
  const occurrence = { regarding: job, type: 'Normal', reason: 'Seldom', message: 'seen' } as const;
  for (const _ of [1, 2]) events.record(occurrence);
  const counts = ['get', 'events', '--namespace', NAMESPACE, '--output=jsonpath={.items[?(@.reason=="Seldom")].count}'];
  await waitUntil('both are reported', async () => (await cluster.kubectl(counts)) === '2', { timeoutMs: 20_000 });
  await events.stop();
  await connection.close();
}

function minimal({ apiVersion, kind }: ResourceKind<KubeObject>, namespace: string): object {
  const labelled = { app: 'seldom' };
  const specs: Readonly<Record<string, object>> = {
    ServiceRegistration: { serviceName: 'seldom', url: 'http://seldom', source: 'Manifest' },
    Lease: {},
    DeliveryJob: {
      serviceName: 'seldom',
      operation: 'Deploy',
      version: '1',
      artifact: { type: 'image', url: 'registry.example/seldom:1' },
      strategy: 'Rolling',
    },
    Deployment: {
      replicas: 0,
      selector: { matchLabels: labelled },
      template: {
        metadata: { labels: labelled },
        spec: { containers: [{ name: 'main', image: 'registry.example/x:1' }] },
      },
    },
    Service: { selector: labelled, ports: [{ port: 80 }] },
    HTTPRoute: { rules: [{ backendRefs: [{ name: 'seldom', port: 80 }] }] },
  };
  const content = kind === 'EndpointSlice' ? { addressType: 'IPv4', endpoints: [] } : { spec: specs[kind] };
  return { apiVersion, kind, metadata: { name: 'seldom', namespace }, ...content };
}

test('no process is refused what it asks for', () => {
  const refused = uses.filter(({ isAllowed }) => !isAllowed).map(describeUse);
  expect(refused.filter((use) => use !== tolerated)).toEqual([]);
  expect(uses.length).toBeGreaterThan(50);
});

test('no process has a right that it does not use', () => {
  const unused = rights.filter((right) => !uses.some((use) => use.isAllowed && covers(right, use)));
  expect(unused.map(describeRight)).toEqual([]);
});

test('without any one right a request that the process has made is refused', async () => {
  await applyAll(rights.flatMap((right) => rolesWithout(right)));
  const allowed = uses.filter((use) => use.isAllowed);
  const withoutEffect: string[] = [];
  const check = async (right: Right): Promise<void> => {
    const user = userWithout(right);
    // Everything else goes on as before: what is refused is refused for want of this right.
    const others = onePerRight(allowed, right);
    const missing = async () => {
      const answers = await Promise.all(others.map((use) => isAllowed(user, use)));
      return others.filter((_, index) => answers[index] !== true).map(describeUse);
    };
    await expect.poll(missing, { timeout: 60_000, interval: 200 }).toEqual([]);
    const concerned = allowed.filter((use) => covers(right, use));
    const answers = await Promise.all(concerned.map((use) => isAllowed(user, use)));
    if (answers.every((answer) => answer)) withoutEffect.push(describeRight(right));
  };
  // One after the other: thousands of questions at once would wait for each other longer than for
  // an answer.
  for (const right of rights) await check(right);
  expect(withoutEffect).toEqual([]);
}, 240_000);

/** The user that has all rights of an account but one. */
function userWithout(right: Right): string {
  return `without-${rights.indexOf(right)}`;
}

async function isAllowed(user: string, { namespace, group, resource, verb, name }: Use): Promise<boolean> {
  const [plural = '', subresource] = resource.split('/');
  const review = await admin.request<{ status: { allowed: boolean } }>({
    method: 'POST',
    path: '/apis/authorization.k8s.io/v1/subjectaccessreviews',
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: { user, resourceAttributes: { namespace, group, resource: plural, subresource, verb, name } },
    },
  });
  return review.status.allowed;
}

/** One use of each other right of the account, and none that this one covers. */
function onePerRight(allowed: readonly Use[], right: Right): Use[] {
  const others = rights.filter((other) => other !== right && other.account === right.account);
  return others.flatMap((other) => {
    const use = allowed.find((candidate) => covers(other, candidate) && !covers(right, candidate));
    return use === undefined ? [] : [use];
  });
}

/** Copies of the account's roles, less the right, bound to {@link userWithout}. */
function rolesWithout(right: Right): object[] {
  const user = userWithout(right);
  const kept = rights.filter((other) => other !== right && other.account === right.account);
  const scopes = [...new Set(kept.map(({ namespace }) => namespace))];
  return scopes.flatMap((namespace) => {
    const prefix = namespace === undefined ? 'Cluster' : '';
    const apiVersion = 'rbac.authorization.k8s.io/v1';
    const metadata = { name: user, ...(namespace === undefined ? {} : { namespace }) };
    return [
      {
        apiVersion,
        kind: `${prefix}Role`,
        metadata,
        rules: rulesOf(kept.filter((other) => other.namespace === namespace)),
      },
      {
        apiVersion,
        kind: `${prefix}RoleBinding`,
        metadata,
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: `${prefix}Role`, name: user },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
      },
    ];
  });
}

/** Runs what uses a connection of an account. */
async function as<T>(account: string, run: (connection: KubeConnection) => Promise<T>): Promise<T> {
  const connection = await connectByFile(kubeconfigs[account] ?? '', connectionOptions);
  try {
    return await run(connection);
  } finally {
    await connection.close();
  }
}

function secret(name: string, namespace: string): object {
  const metadata = { name, namespace, labels: { name } };
  return { apiVersion: 'v1', kind: 'Secret', metadata, data: { password: 'eA==' } };
}

/** What the chart gives to operator and registry in respect of Secrets, in words. */
async function rightsToSecrets(secretNames: readonly string[]): Promise<string[]> {
  const processes = { gateway: { enabled: false } };
  const given = rightsOf(await renderChart({ webhooks: { secretNames }, processes }));
  return given.filter(({ resource }) => resource === 'secrets').map(describeRight);
}

/** A Lease, marked as the heartbeats of a registration or not. */
function leaseNamed(name: string, isHeartbeat: boolean) {
  return {
    apiVersion: 'coordination.k8s.io/v1' as const,
    kind: 'Lease' as const,
    metadata: { name, ...(isHeartbeat ? { labels: { [labels.heartbeat]: 'true' } } : {}) },
    spec: { holderIdentity: 'operator-0' },
  };
}

test("the registry can write Leases of heartbeats, and neither the leader's nor any other", async () => {
  const leader = 'operator.rollcall.dev';
  const others = resourceClient(admin, leaseKind, NAMESPACE);
  if ((await others.find(leader)) === undefined) await others.create(leaseNamed(leader, false));
  await as(REGISTRY, async (connection) => {
    const leases = resourceClient(connection, leaseKind, NAMESPACE);
    const taken = { spec: { holderIdentity: 'registry' } };
    const disguised = { ...taken, metadata: { labels: { [labels.heartbeat]: 'true' } } };
    await expect.poll(() => leases.patch(leader, taken).then(() => 200, codeOf)).toBe(403);
    expect(await leases.patch(leader, disguised).then(() => 200, codeOf)).toBe(403);
    expect(await leases.delete(leader).then(() => 200, codeOf)).toBe(403);
    expect(await leases.create(leaseNamed('another-leader', false)).then(() => 200, codeOf)).toBe(403);
    await leases.create(leaseNamed('a-heartbeat', true));
    const unmarked = { metadata: { labels: { [labels.heartbeat]: null } } };
    expect(await leases.patch('a-heartbeat', unmarked).then(() => 200, codeOf)).toBe(403);
    await leases.patch('a-heartbeat', taken);
    await leases.delete('a-heartbeat');
  });
  expect((await others.get(leader)).spec?.holderIdentity).not.toBe('registry');
});

describe('Secrets', () => {
  const elsewhere = [DELIVERY_NAMESPACE, IMPORT_NAMESPACE, CLIENTS_NAMESPACE, 'kube-system', 'default'];

  beforeAll(async () => {
    const own = [WEBHOOK_SECRETS, GATEWAY_KEYS];
    const alike = own.map((name) => secret(`${name}-2`, NAMESPACE));
    const others = elsewhere.flatMap((namespace) => [...own, 'some'].map((name) => secret(name, namespace)));
    await applyAll([...alike, secret('some', NAMESPACE), ...others]);
  });

  /**
   * Of all ways to read Secrets that there are, those that are open to an account: by name, and as
   * lists and watches.
   */
  async function readable(account: string): Promise<string[]> {
    const { items } = await admin.request<{ items: readonly Secret[] }>({
      method: 'GET',
      path: collectionPath(secretKind),
    });
    expect(items.length).toBeGreaterThan(10);
    const lists = [NAMESPACE, ...elsewhere, undefined].map((namespace) => collectionPath(secretKind, namespace));
    const asked = [
      // A watch of a single one ends with its first line, which is JSON by itself.
      ...lists.flatMap((path) => [
        { path },
        { path, query: { watch: true, timeoutSeconds: 1, labelSelector: 'name=some' } },
      ]),
      ...items.map(({ metadata }) => ({ path: `${collectionPath(secretKind, metadata.namespace)}/${metadata.name}` })),
    ];
    return as(account, async (connection) => {
      const open: string[] = [];
      for (const request of asked) {
        const code = await connection.request({ method: 'GET', ...request }).then(() => 200, codeOf);
        if (code !== 403) open.push(request.path);
      }
      return open;
    });
  }

  test('every process can read its own, the gateway those of the clients, and no other in any namespace', async () => {
    const accounts = Object.keys(kubeconfigs);
    expect(accounts).toEqual(expect.arrayContaining([OPERATOR, REGISTRY, GATEWAY, 'rollcall-test']));
    const open = await Promise.all(accounts.map(async (account) => [account, await readable(account)] as const));
    expect(Object.fromEntries(open)).toEqual({
      ...Object.fromEntries(accounts.map((account) => [account, []])),
      [REGISTRY]: [`/api/v1/namespaces/${NAMESPACE}/secrets/${WEBHOOK_SECRETS}`],
      // As a list and as a watch.
      [GATEWAY]: [
        `/api/v1/namespaces/${CLIENTS_NAMESPACE}/secrets`,
        `/api/v1/namespaces/${CLIENTS_NAMESPACE}/secrets`,
        `/api/v1/namespaces/${NAMESPACE}/secrets/${GATEWAY_KEYS}`,
      ],
    });
  });

  test('the registry counts one that it may not read as missing, and says when its own is', async () => {
    await as(REGISTRY, async (connection) => {
      const log = createLogger('test', 'silent');
      const deps = { connection, namespace: NAMESPACE, secretName: WEBHOOK_SECRETS, clock: systemClock, log };
      const secrets = createWebhookSecrets(deps);
      expect(await secrets.read({ name: 'rollcall-postgresql', key: 'password' })).toBeUndefined();
      expect(await secrets.read(await secrets.add('shop', 's3cret'))).toBe('s3cret');
      await resourceClient(admin, secretKind, NAMESPACE).delete(WEBHOOK_SECRETS);
      await expect(secrets.add('shop', 's3cret')).rejects.toMatchObject({ code: 'SECRET_MISSING' });
    });
  });

  test('the gateway says what to do when its own is missing', async () => {
    await resourceClient(admin, secretKind, NAMESPACE).delete(GATEWAY_KEYS);
    await as(GATEWAY, async (connection) => {
      const policy = { rotateAfterMs: 1, publishAheadMs: 1, verifyAfterMs: 1 };
      const log = createLogger('test', 'silent');
      const where = { connection, namespace: NAMESPACE, secretName: GATEWAY_KEYS };
      const keys = createKeyStore({ ...where, policy, refreshMs: 60_000, clock: systemClock, log });
      await expect(keys.actor.start()).rejects.toThrow(`There is no Secret ${GATEWAY_KEYS}`);
    });
  });

  test('the registry can read more where the values name it, and change no more', async () => {
    const change = `${REGISTRY} in ${NAMESPACE}: patch secrets ${WEBHOOK_SECRETS}`;
    expect(await rightsToSecrets(['a', 'b'])).toEqual([
      `${REGISTRY} in ${NAMESPACE}: get secrets ${WEBHOOK_SECRETS} a b`,
      change,
    ]);
    expect(await rightsToSecrets(['*'])).toEqual([`${REGISTRY} in ${NAMESPACE}: get secrets`, change]);
  });

  test("with a namespace of their own for the custom resources the gateway's keys are all of the release's", async () => {
    const apart = await renderChart({ ...values, customResources: { namespace: 'objects' } });
    const given = rightsOf(apart).filter(({ namespace }) => namespace === NAMESPACE);
    expect(given.map(describeRight)).toEqual(
      ['get', 'patch'].map((verb) => `${GATEWAY} in ${NAMESPACE}: ${verb} secrets ${GATEWAY_KEYS}`),
    );
    expect(apart.filter(isRole).map(({ metadata }) => metadata.namespace)).toContain('objects');
  });
});

function codeOf(error: unknown): number {
  if (error instanceof KubeApiError) return error.code;
  throw error;
}
