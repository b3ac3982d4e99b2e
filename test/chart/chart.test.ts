import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { definitions, documentedValues, generateChartReadme } from '../../tools/chart.ts';
import {
  CHART,
  type ChartObject,
  environmentOf,
  helm,
  NAMESPACE,
  objectOf,
  podsOf,
  RELEASE,
  renderAnew,
  renderChart,
  type Values,
} from './chart.ts';

const valuesFile = await readFile(join(CHART, 'values.yaml'), 'utf8');

test('helm lint --strict finds nothing', async () => {
  expect(await helm(['lint', '--strict', CHART])).toContain('0 chart(s) failed');
});

test('README.md and the definitions are what `npm run generate` makes of values.yaml and crds/', async () => {
  expect(await readFile(join(CHART, 'README.md'), 'utf8')).toBe(generateChartReadme(valuesFile));
  const copies = await definitions(new URL('../../charts/rollcall/files/crds/', import.meta.url));
  expect(copies).toEqual(await definitions(new URL('../../crds/', import.meta.url)));
});

test('the chart is of the version of the repository', async () => {
  const chart = parse(await readFile(join(CHART, 'Chart.yaml'), 'utf8')) as { appVersion: string };
  const manifest = JSON.parse(await readFile(join(CHART, '..', '..', 'package.json'), 'utf8')) as { version: string };
  expect(chart.appVersion).toBe(manifest.version);
});

test('every value has a row, with the comment above it', () => {
  const rows = documentedValues(valuesFile);
  const keys = rows.map(({ key }) => key);
  expect(new Set(keys).size).toBe(keys.length);
  expect(rows).toContainEqual({
    key: 'crds.install',
    value: true,
    description:
      'Whether the chart installs the custom resource definitions, and upgrades them. If not, upgrade them before the chart.',
  });
  expect(keys).toContain('image.pullPolicy');
});

describe('values that the schema refuses', () => {
  test.each<[string, Values, string]>([
    ['a name that it does not know', { replicaCount: 3 }, 'replicaCount'],
    ['a field that no process has', { processes: { registry: { replica: 3 } } }, 'replica'],
    ['a default that no process has', { defaults: { resource: {} } }, 'resource'],
    ['a number of replicas in words', { processes: { registry: { replicas: 'two' } } }, 'replicas'],
    ['an unknown way to authenticate', { registry: { authentication: { mode: 'basic' } } }, 'mode'],
    ['reads that are neither', { registry: { authentication: { reads: 'none' } } }, 'reads'],
    ['a token for nobody', { registry: { authentication: { audience: '' } } }, 'audience'],
    ['a quota of something else', { quota: { hard: { 'requests.cpu': 1 } } }, 'requests.cpu'],
    ['an unknown level of logs', { logLevel: 'loud' }, 'logLevel'],
    ['a namespace that can be none', { delivery: { namespaces: ['Shop'] } }, 'namespaces'],
    ['a digest of another kind', { image: { digest: 'md5:1' } }, 'digest'],
    ['an unknown scope of rights', right({ scope: 'everywhere', rules: [rule] }), 'scope'],
    ['rights without rules', right({ scope: 'cluster', rules: [] }), 'rules'],
    ['a route that belongs to no Gateway', { processes: { registry: { httpRoute: { enabled: true } } } }, 'parentRefs'],
    ['a path without a slash', { processes: { gateway: { ingress: { exactPaths: ['keys'] } } } }, 'exactPaths'],
    ['a prefix without a slash', { processes: { gateway: { httpRoute: { morePaths: ['pay'] } } } }, 'morePaths'],
    ['a type that no path has', { processes: { gateway: { ingress: { exactPathType: 'Regex' } } } }, 'exactPathType'],
    ['a process named like a database', { processes: { redis: {} } }, 'redis'],
    ['a size that is none', { postgresql: { persistence: { size: 'large' } } }, 'size'],
    ['a port that admits whoever comes to none', { processes: { registry: { ports: { http: port('') } } } }, 'from'],
    ['a route without a slash', { gateway: { routes: [{ name: 'a', prefix: 'a', service: 's' }] } }, 'prefix'],
    ['a route with a field of nothing', { gateway: { routes: [{ ...route, scope: 'x' }] } }, 'scope'],
    ['an issuer without keys', { gateway: { externalIssuers: [{ issuer: 'i', audience: 'a' }] } }, 'jwksUrl'],
    ['an origin with a path', { gateway: { corsOrigins: ['https://app.example.com/'] } }, 'corsOrigins'],
    ['a proxy by its name', { gateway: { trustedProxies: ['traefik'] } }, 'trustedProxies'],
    ['no requests at all', { gateway: { limits: { free: 0 } } }, 'free'],
    ['a namespace of clients that can be none', { clients: { namespace: 'A' } }, 'namespace'],
    ['a domain that is none', { dns: { clusterDomain: '.local' } }, 'clusterDomain'],
    ['host names of no kind', { dns: { externalNames: 'all' } }, 'externalNames'],
    [
      'a Secret of a process in any namespace',
      { processes: { registry: { secrets: { s: { scope: 'cluster' } } } } },
      'scope',
    ],
    ['one URL for all services', { postgresql: { external: { url: 'postgres://me:word@db/rollcall' } } }, 'url'],
    ['a public URL with a path', { publicUrl: 'https://example.com/api' }, 'publicUrl'],
    [
      'providers, and a Secret with others',
      { payment: { providers: { content: { a: 1 }, existingSecret: 'b' } } },
      'providers',
    ],
    ['a seller of nowhere', { payment: { sellers: [{ name: 'A', address: ['B'] }] } }, 'country'],
    ['a port that is none', { processes: { payment: { egressPorts: [0] } } }, 'egressPorts'],
    ['a password as a value', { postgresql: { password: 'x' } }, 'password'],
  ])('%s', async (_what, values, named) => {
    const refusal = await renderChart(values).then(
      () => 'accepted',
      (error: Error) => error.message,
    );
    expect(refusal).toContain("values don't meet the specifications of the schema");
    expect(refusal).toContain(named);
  });
});

const route = { name: 'reports', prefix: '/api/v1/reports', service: 'reporting' };
const rule = { apiGroups: [''], resources: ['secrets'], verbs: ['get'] };

function port(from: string): object {
  return { port: 3001, from };
}

function right(rights: object): Values {
  return { processes: { registry: { rbac: { more: rights } } } };
}

test('an Ingress for a port that the process does not have is refused', async () => {
  const values = { processes: { registry: { ingress: { enabled: true, port: 'web' } } } };
  await expect(renderChart(values)).rejects.toThrow('processes.registry.ingress.port names no port of the process');
});

test('a port that admits whoever comes to a port that is not there is refused', async () => {
  const values = { processes: { registry: { ports: { grpc: { port: 50_051, from: 'web' } } } } };
  await expect(renderChart(values)).rejects.toThrow('processes.registry.ports.grpc.from names no port of the process');
});

/** What the chart makes in a namespace, which may be of the chart itself. */
function kindsIn(objects: readonly ChartObject[], namespace: string): string[] {
  return objects.filter(({ metadata }) => namespace === (metadata.namespace ?? metadata.name)).map(({ kind }) => kind);
}

describe('what values lead to', () => {
  test('every process runs twice, with embedded databases, when nothing is said', async () => {
    const objects = await renderChart();
    const replicas = objects
      .filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet')
      .map(({ metadata, spec }) => [metadata.name, (spec as { replicas: number }).replicas]);
    expect(Object.fromEntries(replicas)).toEqual({
      'rollcall-operator': 2,
      'rollcall-registry': 2,
      'rollcall-gateway': 2,
      'rollcall-communication': 2,
      'rollcall-payment': 2,
      'rollcall-federation': 2,
      'rollcall-postgresql': 1,
      'rollcall-redis': 1,
    });
    expect(environmentOf(objects, 'rollcall-registry')).toMatchObject({
      ROLLCALL_NAMESPACE: NAMESPACE,
      ROLLCALL_DATABASE_URL: { secretKeyRef: { name: 'rollcall-postgresql', key: 'registry-url' } },
    });
    // To have tokens reviewed, and nothing else.
    const clusterWide = objects.filter(({ kind }) => kind.startsWith('ClusterRole'));
    expect(clusterWide.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
      expect.stringMatching(/^ClusterRole .*registry-tokens$/),
      expect.stringMatching(/^ClusterRoleBinding .*registry-tokens$/),
    ]);
  });

  test('a new process needs an entry and no template', async () => {
    const reporting = {
      replicas: 3,
      ports: {
        http: { port: 3006, from: 'anywhere' },
        grpc: { port: 50_052, appProtocol: 'kubernetes.io/h2c', from: 'http' },
      },
      redis: true,
      env: { SCHEMAS: '{{ include "rollcall.fullname" . }}-schemas' },
      files: { 'settings.yaml': 'release: {{ .Release.Name }}' },
      secrets: { 'reporting-keys': { scope: 'release' } },
      rbac: {
        clients: {
          scope: 'customResources',
          rules: [{ apiGroups: ['rollcall.dev'], resources: ['apiclients'], verbs: ['get'] }],
        },
      },
      autoscaling: { enabled: true },
      ingress: { enabled: true, hosts: ['api.example.com'] },
      podDisruptionBudget: { enabled: false },
    };
    const objects = await renderChart({ processes: { reporting } });
    const name = 'rollcall-reporting';
    const made = objects.filter(({ metadata }) => metadata.name.startsWith(name)).map(({ kind }) => kind);
    expect(made.toSorted()).toEqual([
      'ConfigMap',
      'Deployment',
      'HorizontalPodAutoscaler',
      'Ingress',
      'NetworkPolicy',
      'Role',
      'RoleBinding',
      'Secret',
      'Service',
      'ServiceAccount',
    ]);
    const { containers, volumes } = podsOf(objects).find((pod) => pod.name === name)?.template.spec ?? {};
    expect(containers?.[0]?.args).toEqual(['reporting']);
    expect(containers?.[0]?.['volumeMounts']).toContainEqual(
      expect.objectContaining({ name: 'files', mountPath: '/etc/rollcall' }),
    );
    expect(volumes).toContainEqual({ name: 'files', configMap: { name } });
    expect(objectOf(objects, 'ConfigMap', name)['data']).toEqual({ 'settings.yaml': 'release: rollcall' });
    expect(environmentOf(objects, name)).toMatchObject({
      SCHEMAS: 'rollcall-schemas',
      ROLLCALL_REDIS_URL: { secretKeyRef: { name: 'rollcall-redis', key: 'url' } },
    });
    expect(objectOf(objects, 'Deployment', name)['spec']).not.toHaveProperty('replicas');
  });

  test('names in DNS have a namespace that stays, and rights in it alone', async () => {
    expect(kindsIn(await renderChart(), 'rollcall-services')).toEqual([]);
    const on = await renderChart({ dns: { enabled: true, clusterDomain: 'example.internal' } });
    expect(kindsIn(on, 'rollcall-services')).toEqual(['Namespace', 'Role', 'RoleBinding']);
    const { metadata } = objectOf(on, 'Namespace', 'rollcall-services');
    expect(metadata.annotations).toEqual({ 'helm.sh/resource-policy': 'keep' });
    expect(environmentOf(on, 'rollcall-operator')).toMatchObject({
      ROLLCALL_DNS_NAMESPACE: 'rollcall-services',
      ROLLCALL_CLUSTER_DOMAIN: 'example.internal',
      ROLLCALL_DNS_HOST_NAMES: 'services',
    });
    const elsewhere = await renderChart({ dns: { enabled: true, namespace: 'shop', createNamespace: false } });
    expect(kindsIn(elsewhere, 'shop')).toEqual(['Role', 'RoleBinding']);
    const beside = renderChart({ dns: { enabled: true, namespace: 'rollcall-clients' } });
    await expect(beside).rejects.toThrow('dns.namespace must be one of its own');
  });

  test('a process without rights gets no token', async () => {
    const objects = await renderChart();
    const tokens = podsOf(objects).map(({ name, template }) => [name, template.spec['automountServiceAccountToken']]);
    expect(Object.fromEntries(tokens)).toEqual({
      'rollcall-operator': true,
      'rollcall-registry': true,
      'rollcall-gateway': true,
      'rollcall-communication': false,
      'rollcall-payment': false,
      'rollcall-federation': false,
      'rollcall-postgresql': false,
      'rollcall-redis': false,
      'rollcall-test': false,
    });
  });

  test('what is on by default can be switched off for one process', async () => {
    const off = {
      podDisruptionBudget: { enabled: false },
      preStopSeconds: 0,
      topologySpread: [],
      rbac: { tokens: null },
    };
    const processes = {
      ...Object.fromEntries(
        ['registry', 'gateway', 'communication', 'payment', 'federation'].map((name) => [name, off]),
      ),
      operator: { enabled: false },
    };
    const objects = await renderChart({ processes });
    expect(objects.filter(({ kind }) => kind === 'PodDisruptionBudget')).toEqual([]);
    expect(objects.filter(({ metadata }) => metadata.name.includes('operator'))).toEqual([]);
    const spec = podsOf(objects).find(({ name }) => name === 'rollcall-registry')?.template.spec;
    expect(spec).not.toHaveProperty('topologySpreadConstraints');
    expect(spec?.containers[0]).not.toHaveProperty('lifecycle');
  });

  test('an external database leaves the embedded one out, and its URL is in a Secret only', async () => {
    const url = 'postgres://me:word@db.example.com/rollcall';
    const objects = await renderChart({
      postgresql: { external: { urls: { registry: url, communication: url, payment: url, federation: url } } },
      redis: { external: { secretName: 'mine' } },
    });
    expect(objects.filter(({ kind }) => kind === 'StatefulSet')).toEqual([]);
    const holders = objects.filter((object) => JSON.stringify(object).includes('word@'));
    expect(holders.map(({ kind }) => kind)).toEqual(['Secret']);
    expect(environmentOf(objects, 'rollcall-registry')).toMatchObject({
      ROLLCALL_DATABASE_URL: { secretKeyRef: { name: holders[0]?.metadata.name, key: 'registry-url' } },
    });
  });

  test('each process with a database has a role, a password and a URL of its own', async () => {
    const objects = await renderChart({ processes: { reporting: { database: true }, console: {} } });
    const { data } = objectOf(objects, 'Secret', 'rollcall-postgresql') as unknown as { data: Record<string, string> };
    const users = ['communication', 'federation', 'payment', 'registry', 'reporting'];
    const keys = [...users.flatMap((name) => [`${name}-password`, `${name}-url`]), 'password'].toSorted();
    expect(Object.keys(data).toSorted()).toEqual(keys);
    const passwords = keys.filter((key) => key.endsWith('password')).map((key) => data[key]);
    expect(new Set(passwords).size).toBe(users.length + 1);
    const text = (key: string) => Buffer.from(data[key] ?? '', 'base64').toString();
    for (const name of users) {
      const url = `postgres://${name}:${text(`${name}-password`)}@rollcall-postgresql:5432/rollcall`;
      expect(text(`${name}-url`)).toBe(url);
      expect(environmentOf(objects, `rollcall-${name}`)).toMatchObject({
        ROLLCALL_DATABASE_URL: { secretKeyRef: { name: 'rollcall-postgresql', key: `${name}-url` } },
      });
    }
    // PostgreSQL makes the roles of these, and sees the passwords of nobody else.
    const database = podsOf(objects).find(({ name }) => name === 'rollcall-postgresql')?.template.spec;
    const items = users.map((name) => ({ key: `${name}-password`, path: name }));
    expect(database?.volumes).toContainEqual({
      name: 'passwords',
      secret: { secretName: 'rollcall-postgresql', items },
    });
  });

  test('an external PostgreSQL without a URL for a process that uses it is refused', async () => {
    const url = 'postgres://registry:word@db.example.com/rollcall';
    const without = { postgresql: { external: { urls: { registry: url, communication: url, federation: url } } } };
    await expect(renderChart(without)).rejects.toThrow('postgresql.external.urls has no URL for payment');
  });

  test('pods do not reveal by a checksum what the password in a URL is, and one rendering says one thing', async () => {
    const values = {
      postgresql: { external: { urls: { registry: 'postgres://me:word@db.example.com/rollcall' } } },
      redis: { external: { url: 'redis://:word@cache.example.com' } },
      processes: {
        registry: { redis: true },
        communication: { enabled: false },
        payment: { enabled: false },
        federation: { enabled: false },
      },
    };
    const versions = async () => {
      const objects = await renderAnew(values);
      const { template } = objectOf(objects, 'Deployment', 'rollcall-registry')['spec'] as {
        readonly template: Pick<ChartObject, 'metadata'>;
      };
      return ['postgresql', 'redis'].map((database) => {
        const secret = objectOf(objects, 'Secret', `rollcall-${database}-external`).metadata;
        const version = secret.annotations?.['rollcall.dev/url-version'];
        expect(version).toMatch(/^[A-Za-z0-9]{16}$/);
        expect(template.metadata.annotations?.[`rollcall.dev/${database}-url-version`]).toBe(version);
        return version;
      });
    };
    // Without a cluster nothing is known of what there was: whatever could be read from the URL
    // would be the same.
    const all = [...(await versions()), ...(await versions())];
    expect(new Set(all).size).toBe(4);
  });

  test('namespaces for deliveries and imports reach the operator, and it gets rights in these alone', async () => {
    const objects = await renderChart({
      delivery: { namespaces: ['shop', 'billing'] },
      import: { namespaces: ['web'] },
    });
    expect(environmentOf(objects, 'rollcall-operator')).toMatchObject({
      ROLLCALL_DELIVERY_NAMESPACES: 'shop,billing',
      ROLLCALL_IMPORT_NAMESPACES: 'web',
    });
    const roles = objects.filter(
      ({ kind, metadata }) => kind === 'Role' && metadata.name.startsWith('rollcall-operator'),
    );
    expect(roles.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).toSorted()).toEqual([
      'billing/rollcall-operator-delivery',
      'rollcall/rollcall-operator-jobs',
      'rollcall/rollcall-operator-quota',
      'rollcall/rollcall-operator-registrations',
      'shop/rollcall-operator-delivery',
      'web/rollcall-operator-import',
    ]);
  });

  test('"*" is what is needed for rights in the whole cluster', async () => {
    const objects = await renderChart({ delivery: { namespaces: ['*'] }, import: { namespaces: ['*'] } });
    expect(environmentOf(objects, 'rollcall-operator')).toMatchObject({
      ROLLCALL_DELIVERY_NAMESPACES: '*',
      ROLLCALL_IMPORT_NAMESPACES: '',
    });
    const wide = objects.filter(({ kind }) => kind === 'ClusterRole').map(({ metadata }) => metadata.name);
    expect(wide.toSorted()).toEqual([
      'rollcall:rollcall-operator-delivery',
      'rollcall:rollcall-operator-import',
      'rollcall:rollcall-registry-tokens',
    ]);
  });

  test('a Service can have the name of the release', async () => {
    for (const { template } of podsOf(await renderChart())) expect(template.spec['enableServiceLinks']).toBe(false);
  });

  test('databases are not restarted by a new version of the chart', async () => {
    const pods = podsOf(await renderChart());
    for (const { template } of pods.filter(({ name }) => /postgresql|redis/.test(name))) {
      expect(Object.keys(template.metadata.labels).toSorted()).toEqual([
        'app.kubernetes.io/component',
        'app.kubernetes.io/instance',
        'app.kubernetes.io/name',
      ]);
    }
  });
});

async function alerts(values: Values = {}): Promise<readonly { readonly alert: string; readonly expr: string }[]> {
  const objects = await renderChart({ monitoring: { rules: { enabled: true } }, ...values });
  const { groups } = objectOf(objects, 'PrometheusRule', RELEASE)['spec'] as {
    readonly groups: readonly { readonly rules: Awaited<ReturnType<typeof alerts>> }[];
  };
  return groups.flatMap(({ rules }) => rules);
}

describe('alerts', () => {
  test('on too few of something are also raised where there is none at all, for the sum of nothing is nothing', async () => {
    const few = (await alerts()).filter(({ expr }) => expr.includes(' < '));
    expect(few.map(({ alert }) => alert)).toEqual(['RollcallNoLeader']);
    for (const { expr } of few) expect(expr).toMatch(/^\(sum\(.+\) or vector\(0\)\) < 1$/);
  });

  test('miss no leader where the release has no operator', async () => {
    const all = (await alerts()).map(({ alert }) => alert);
    const processes = { operator: { enabled: false } };
    const left = (await alerts({ processes })).map(({ alert }) => alert);
    expect(left).toEqual(all.filter((alert) => alert !== 'RollcallNoLeader'));
    expect(left.length).toBe(all.length - 1);
  });
});

test('the operator is known by the Lease that it may patch', async () => {
  const objects = await renderChart();
  const lease = objects.filter(({ kind }) => kind === 'Lease').map(({ metadata }) => metadata.name);
  const role = objectOf(objects, 'Role', `${RELEASE}-operator-registrations`);
  const rules = role['rules'] as readonly { readonly resourceNames?: readonly string[] }[];
  expect(rules.flatMap(({ resourceNames = [] }) => resourceNames)).toEqual(lease);
});

test('the operator knows which pod it is, for a Lease that it makes anew to go with that', async () => {
  expect(environmentOf(await renderChart(), 'rollcall-operator')).toMatchObject({
    ROLLCALL_POD_NAME: { fieldRef: { fieldPath: 'metadata.name' } },
    ROLLCALL_POD_UID: { fieldRef: { fieldPath: 'metadata.uid' } },
  });
});
