import { beforeAll, describe, expect, test } from 'vitest';
import { kubectl } from '../support/kube.ts';
import { type ChartObject, NAMESPACE, podsOf, renderChart, type Values } from './chart.ts';
import { installPublishedCrds } from './cluster.ts';
import { type Dimension, pairwise } from './pairwise.ts';

/** What can be chosen independently. The first answer of each is the default. */
const dimensions = {
  postgresql: {
    embedded: {},
    'without a volume': { postgresql: { persistence: { enabled: false } } },
    'volume goes': { postgresql: { persistence: { keep: false, storageClass: 'fast', size: '20Gi' } } },
    'existing Secret': { postgresql: { existingSecret: 'mine' } },
    'external URLs': {
      postgresql: {
        external: {
          urls: {
            registry: 'postgres://a:b@db/rollcall',
            communication: 'postgres://c:d@db/rollcall',
            payment: 'postgres://e:f@db/rollcall',
            federation: 'postgres://g:h@db/rollcall',
          },
        },
      },
    },
    'external Secret': { postgresql: { external: { secretName: 'mine' } } },
  },
  redis: {
    embedded: {},
    'existing Secret': { redis: { existingSecret: 'mine' } },
    'external URL': { redis: { external: { url: 'redis://:b@cache' } } },
  },
  network: {
    'only what must': {},
    none: { networkPolicy: { enabled: false } },
    strict: {
      networkPolicy: {
        apiServer: { cidrs: ['10.0.0.1/32', 'fd00::/64'], ports: [6443] },
        metrics: { from: 'anywhere' },
      },
      defaults: { egress: [{ to: [{ ipBlock: { cidr: '10.0.0.0/8' } }] }] },
      processes: {
        operator: { egress: [] },
        registry: { egress: [], redis: true, ports: { http: { port: 3001, from: [{ podSelector: {} }] } } },
        gateway: { egress: [] },
        communication: { egressPorts: [25] },
        payment: { egress: [], egressPorts: [] },
        federation: { egress: [] },
      },
    },
  },
  namespaces: {
    own: {},
    named: {
      delivery: { namespaces: ['shop'] },
      import: { namespaces: ['shop', 'rollcall'] },
      webhooks: { secretNames: ['mine', 'yours'] },
    },
    all: { delivery: { namespaces: ['*'] }, import: { namespaces: ['*'] }, webhooks: { secretNames: ['*'] } },
    'apart from the release': { customResources: { namespace: 'shop' }, import: { enabled: false } },
  },
  authentication: {
    tokens: {},
    'tokens of every pod, for reading, too': {
      registry: { authentication: { audience: 'api-server', reads: 'authenticated' }, registrationsPerSubject: 10 },
    },
    off: {
      registry: { authentication: { mode: 'off' }, namespaces: ['shop', 'rollcall'] },
      webhooks: { allowUnsigned: true, legacySignatures: true, plainSignatures: false },
      quota: { hard: { 'count/deliveryjobs.rollcall.dev': 100 } },
    },
  },
  entrance: {
    none: {},
    ingress: {
      gateway: { trustedProxies: ['10.0.0.0/8'] },
      processes: { gateway: { ingress: { enabled: true, className: 'nginx', annotations: { a: 'b' } } } },
    },
    'ingress with a certificate': {
      gateway: { trustedProxies: ['10.0.0.0/8'] },
      processes: {
        gateway: {
          ingress: {
            enabled: true,
            hosts: ['api.example.com', 'a.example.com'],
            tls: { enabled: true, certManager: { issuer: { name: 'letsencrypt' } } },
          },
        },
      },
    },
    'Gateway API': {
      gateway: { trustedProxies: ['10.0.0.0/8'] },
      processes: {
        gateway: {
          httpRoute: {
            enabled: true,
            parentRefs: [{ name: 'public', namespace: 'gateways' }],
            hostnames: ['api.example.com'],
            timeouts: { request: '0s' },
          },
          grpcRoute: { enabled: true, parentRefs: [{ name: 'public', namespace: 'gateways' }] },
        },
      },
    },
    'past the gateway': {
      processes: {
        registry: {
          ingress: { enabled: true },
          httpRoute: { enabled: true, parentRefs: [{ name: 'public' }] },
          grpcRoute: { enabled: true, parentRefs: [{ name: 'public' }] },
        },
      },
    },
  },
  monitoring: {
    none: {},
    pods: { monitoring: { podMonitor: { enabled: true, labels: { release: 'p' } }, rules: { enabled: true } } },
    services: { monitoring: { serviceMonitor: { enabled: true }, dashboards: { enabled: true } } },
  },
  size: {
    default: {},
    'scaled by load': {
      defaults: {
        autoscaling: { enabled: true, behavior: { scaleDown: { stabilizationWindowSeconds: 60 } } },
        podDisruptionBudget: { maxUnavailable: '50%' },
      },
    },
    single: { defaults: { replicas: 1, podDisruptionBudget: { enabled: false }, topologySpread: [] } },
  },
  placement: {
    anywhere: {},
    chosen: {
      imagePullSecrets: [{ name: 'pull' }],
      image: { repository: 'registry.example.com/rollcall', digest: `sha256:${'0'.repeat(64)}` },
      commonLabels: { team: 'platform' },
      fullnameOverride: 'rc',
      defaults: {
        nodeSelector: { disk: 'ssd' },
        tolerations: [{ key: 'a', operator: 'Exists' }],
        affinity: { nodeAffinity: {} },
        priorityClassName: 'system-cluster-critical',
        podLabels: { a: 'b' },
        podAnnotations: { a: 'b' },
        serviceAccount: { annotations: { a: 'b' } },
        extraEnv: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/ca/ca.crt' }],
        extraVolumes: [{ name: 'ca', configMap: { name: 'ca' } }],
        extraVolumeMounts: [{ name: 'ca', mountPath: '/ca' }],
      },
      postgresql: { nodeSelector: { disk: 'ssd' } },
      redis: { tolerations: [{ key: 'a', operator: 'Exists' }] },
    },
  },
  processes: {
    all: {},
    'registry alone': {
      processes: {
        operator: { enabled: false },
        gateway: { enabled: false },
        communication: { enabled: false },
        payment: { enabled: false },
        federation: { enabled: false },
      },
      tests: { enabled: false },
    },
    'one more, and no gateway': {
      processes: {
        gateway: { enabled: false },
        reporting: {
          ports: {
            http: { port: 3006, from: 'anywhere' },
            grpc: { port: 50_052, appProtocol: 'kubernetes.io/h2c', from: [{ namespaceSelector: {} }] },
          },
          service: { type: 'LoadBalancer' },
          redis: true,
          calls: ['registry'],
          files: { 'a.yaml': 'a: {{ .Release.Name }}' },
          secrets: { k: { scope: 'release' } },
          rbac: {
            keys: {
              scope: 'release',
              rules: [{ apiGroups: [''], resources: ['secrets'], resourceNames: ['k'], verbs: ['get'] }],
            },
          },
          grpcRoute: {
            enabled: true,
            parentRefs: [{ name: 'public' }],
            matches: [{ method: { service: 'a.B' } }],
          },
        },
      },
    },
  },
  clients: {
    'beside the release': {},
    'in the release': { clients: { namespace: NAMESPACE } },
    'where there is a namespace': { clients: { namespace: 'shop', createNamespace: false } },
  },
  gateway: {
    default: {},
    configured: {
      gateway: {
        routes: [
          {
            name: 'reports',
            prefix: '/api/v1/reports',
            service: 'reporting',
            upstreamPrefix: '/v2',
            scopes: ['reports:read'],
            methods: ['GET'],
            requestsPerMinute: { free: 2 },
            timeoutSeconds: 1.5,
          },
        ],
        limits: { premium: 1_000_000 },
        trustedProxies: ['10.0.0.0/8', 'fd00::1'],
        corsOrigins: ['*'],
        token: { issuer: 'https://api.example.com', audience: 'shop', lifetimeSeconds: 600 },
        keyRotationSeconds: 7_776_000,
        externalIssuers: [
          { issuer: 'https://id.example.com', audience: 'rollcall', jwksUrl: 'https://id.example.com/keys' },
        ],
      },
    },
  },
  'messages and payments': {
    'without providers': {},
    'in values': {
      publicUrl: 'https://pay.example.com',
      communication: { providers: { content: { email: [{ kind: 'smtp', host: 'mail.example.com' }] } } },
      payment: {
        providers: { content: { default: 'payfast' } },
        sellers: [{ name: 'Rollcall (Pty) Ltd', address: ['1 Main Road', 'Cape Town'], country: 'ZA' }],
      },
    },
    'in Secrets': {
      communication: { providers: { existingSecret: 'mine' }, vault: { existingSecret: 'mine' } },
      payment: { providers: { existingSecret: 'mine' }, vault: { existingSecret: 'mine' } },
    },
  },
  dns: {
    off: {},
    'beside the release': { dns: { enabled: true } },
    'where there is a namespace': { dns: { enabled: true, namespace: 'names', createNamespace: false } },
  },
  definitions: { kept: {}, deleted: { crds: { keep: false } }, 'from elsewhere': { crds: { install: false } } },
} as const satisfies Readonly<Record<string, Dimension<Values>>>;

beforeAll(async () => {
  for (const namespace of [NAMESPACE, 'shop', 'names', 'rollcall-clients', 'rollcall-services'])
    await kubectl(['create', 'namespace', namespace]);
  await installPublishedCrds(['gateway-api', 'cert-manager', 'prometheus-operator'], kubectl);
  // What a namespace that enforces it refuses is refused here.
  const level = 'pod-security.kubernetes.io/enforce=restricted';
  await kubectl(['label', 'namespace', NAMESPACE, level]);
}, 300_000);

const combinations = pairwise(dimensions);

/** What the API server would accept, as JSON: a dry run changes nothing, so it need not be asked again. */
const known = new Set<string>();

describe('the API server accepts all objects of the chart', () => {
  test.each(combinations.map((combination) => [nameOf(combination), combination] as const))('%s', async (_, chosen) => {
    const objects = await renderChart(valuesOf(chosen));
    expect(objects.length).toBeGreaterThan(5);
    const items = [...objects.filter(({ kind }) => kind !== 'Pod'), ...barePods(objects)];
    const unknown = items.filter((item) => !known.has(JSON.stringify(item)));
    const accepted = await dryRun(unknown);
    expect(accepted.trim().split('\n').length).toBe(unknown.length);
    for (const item of unknown) known.add(JSON.stringify(item));
  });
});

test('every two answers meet in one of the combinations', () => {
  const answers = Object.entries(dimensions).flatMap(([dimension, given]) =>
    Object.keys(given).map((answer) => [dimension, answer] as const),
  );
  const apart = answers.flatMap(([a, one]) =>
    answers
      .filter(([b, other]) => a < b && !combinations.some((chosen) => chosen[a] === one && chosen[b] === other))
      .map(([b, other]) => ({ [a]: one, [b]: other })),
  );
  expect(apart).toEqual([]);
  expect(combinations.length).toBeLessThan(45);
});

test('the dry run would refuse a pod that may do more, and a field that does not exist', async () => {
  const [pod] = barePods(await renderChart({ defaults: { securityContext: { allowPrivilegeEscalation: true } } }));
  await expect(dryRun([pod ?? {}])).rejects.toThrow('violates PodSecurity "restricted');
  const deployment = (await renderChart()).find(({ kind }) => kind === 'Deployment');
  const spec = { ...(deployment?.['spec'] as object), replica: 2 };
  await expect(dryRun([{ ...deployment, spec }])).rejects.toThrow('unknown field "replica"');
});

/** @returns the names of what the API server would accept, a line each. */
function dryRun(items: readonly object[]): Promise<string> {
  const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  const args = ['apply', '--server-side', '--force-conflicts', '--dry-run=server', '--filename=-', '--output=name'];
  return kubectl(args, { stdin });
}

/**
 * The pods that controllers would make: only pods themselves are refused by the Pod Security
 * Standard.
 */
function barePods(objects: readonly ChartObject[]): object[] {
  return podsOf(objects).map(({ name, template }) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...template.metadata, name: `dry-run-${name}`, namespace: NAMESPACE },
    spec: {
      ...template.spec,
      // Its own is not there, as nothing is.
      serviceAccountName: 'default',
      volumes: [
        ...(template.spec.volumes ?? []).filter((volume) => !('name' in volume && volume.name === 'data')),
        { name: 'data', emptyDir: {} },
      ],
    },
  }));
}

function nameOf(combination: Readonly<Record<string, string>>): string {
  const chosen = Object.entries(combination).filter(
    ([dimension, answer]) => answer !== Object.keys(dimensions[dimension as keyof typeof dimensions])[0],
  );
  return chosen.length === 0 ? 'all defaults' : chosen.map((choice) => choice.join(': ')).join(', ');
}

function valuesOf(combination: Readonly<Record<string, string>>): Values {
  const chosen = Object.entries(combination).map(
    ([dimension, answer]) => (dimensions as Readonly<Record<string, Dimension<Values>>>)[dimension]?.[answer] ?? {},
  );
  return chosen.reduce<Values>((merged, values) => merge(merged, values), {});
}

function merge(base: Values, over: Values): Values {
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(over)) {
    const present = merged[key];
    merged[key] = isMap(present) && isMap(value) ? merge(present, value) : value;
  }
  return merged;
}

function isMap(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
