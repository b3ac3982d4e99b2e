import { clientAddress } from '@rollcall/gateway/admission/client-address.ts';
import { gatewayConfig } from '@rollcall/gateway/config.ts';
import { parseRoutes } from '@rollcall/gateway/upstream/routing/routes-file.ts';
import { registryConfig } from '@rollcall/registry/config.ts';
import { describe, expect, test } from 'vitest';
import { type ChartObject, environmentOf, NAMESPACE, objectOf, podsOf, renderChart, type Values } from './chart.ts';

const GATEWAY = 'rollcall-gateway';
/** Where there is a way in by a proxy, the chart asks whose word is taken. */
const PROXIES = { trustedProxies: ['10.42.0.0/16'] };

/** The environment that the chart gives a process, without what comes from Secrets and fields. */
function givenTo(objects: readonly ChartObject[], process: string): Record<string, string> {
  const given = Object.entries(environmentOf(objects, process)).flatMap(([name, value]) =>
    typeof value === 'string' ? [[name, value] as const] : [],
  );
  return Object.fromEntries(given);
}

/** What the process makes of it. */
function configOf(objects: readonly ChartObject[]): ReturnType<typeof gatewayConfig> {
  return gatewayConfig(givenTo(objects, GATEWAY));
}

/** Whose clients the registry admits. */
async function gatewayOfRegistry(processes: Values) {
  const objects = await renderChart({ processes });
  const environment = {
    ...givenTo(objects, 'rollcall-registry'),
    ROLLCALL_DATABASE_URL: 'postgres://postgresql/rollcall',
  };
  return registryConfig(environment).authentication?.gateway;
}

function routesOf(objects: readonly ChartObject[]): ReturnType<typeof parseRoutes> {
  const { 'routes.yaml': text = '' } = objectOf(objects, 'ConfigMap', GATEWAY)['data'] as Record<string, string>;
  return parseRoutes(text);
}

async function namespaces(values: Values = {}): Promise<ChartObject['metadata'][]> {
  return (await renderChart(values)).filter(({ kind }) => kind === 'Namespace').map(({ metadata }) => metadata);
}

function podOf(objects: readonly ChartObject[]) {
  const pod = podsOf(objects).find(({ name }) => name === GATEWAY);
  if (pod === undefined) throw new Error('There is no gateway');
  return pod.template.spec;
}

describe('the gateway', () => {
  test('has settings that it understands when nothing is said', async () => {
    const objects = await renderChart();
    expect(configOf(objects)).toMatchObject({
      namespace: `${NAMESPACE}-clients`,
      port: 3000,
      grpcPort: 50_051,
      grpcResetsPerSecond: 100,
      drainMs: 10_000,
      redisPrefix: `rollcall/${NAMESPACE}/rollcall`,
      registry: {
        urls: ['http://rollcall-registry:3001'],
        grpcOrigin: 'http://rollcall-registry:50051',
      },
      keys: {
        namespace: NAMESPACE,
        secretName: 'rollcall-gateway-keys',
        rotateAfterMs: 30 * 86_400_000,
        refreshMs: 60_000,
      },
      token: { issuer: 'rollcall', audience: 'rollcall', lifetimeSeconds: 3600 },
      externalIssuers: [],
      limits: {
        premium: { requests: 1000, windowMs: 60_000 },
        standard: { requests: 100, windowMs: 60_000 },
        free: { requests: 10, windowMs: 60_000 },
        anonymous: { requests: 60, windowMs: 60_000 },
      },
    });
    expect(routesOf(objects)).toEqual([]);
  });

  test('has what the values say, numbers of a million and quotation marks included', async () => {
    const issuer = {
      issuer: 'https://id.example.com/"a"',
      audience: 'shop',
      jwksUrl: 'https://id.example.com/keys?a=1&b=2',
      algorithms: ['RS256'],
      defaultTier: 'standard',
    };
    const objects = await renderChart({
      gateway: {
        routes: [{ name: 'reports', prefix: '/r', service: 'reporting', requestsPerMinute: { premium: 1_000_000 } }],
        limits: { premium: 1_000_000 },
        trustedProxies: ['10.42.0.0/16', 'fd00::/8'],
        corsOrigins: ['https://app.example.com', 'http://localhost:8080'],
        token: { lifetimeSeconds: 600 },
        keyRotationSeconds: 7_776_000,
        externalIssuers: [issuer],
      },
    });
    const config = configOf(objects);
    expect(config).toMatchObject({
      externalIssuers: [issuer],
      limits: { premium: { requests: 1_000_000 }, free: { requests: 10 } },
      token: { issuer: 'rollcall', lifetimeSeconds: 600 },
      keys: { rotateAfterMs: 7_776_000_000 },
      corsOrigins: new Set(['https://app.example.com', 'http://localhost:8080']),
    });
    expect(clientAddress('10.42.1.1', '192.0.2.1', config.trustedProxies)).toBe('192.0.2.1');
    expect(clientAddress('10.43.1.1', '192.0.2.1', config.trustedProxies)).toBe('10.43.1.1');
    expect(routesOf(objects)).toMatchObject([
      { prefix: '/r', service: 'reporting', limits: { limits: { premium: { requests: 1_000_000 } } } },
    ]);
  });

  test.each(['ingress', 'httpRoute', 'grpcRoute'])('asks for the proxies that %s stands for', async (way) => {
    const route = { enabled: true, ...(way === 'ingress' ? {} : { parentRefs: [{ name: 'public' }] }) };
    const render = (trustedProxies: readonly string[]) =>
      renderChart({ gateway: { trustedProxies }, processes: { gateway: { [way]: route } } });
    await expect(render([])).rejects.toThrow('trustedProxies');
    expect(configOf(await render(['10.42.0.0/16']))).toMatchObject({ token: { issuer: 'rollcall' } });
  });

  test('has the zone that Kubernetes gives its pod, unless the values name another', async () => {
    const fieldRef = { fieldPath: "metadata.labels['topology.kubernetes.io/zone']" };
    expect(environmentOf(await renderChart(), GATEWAY)).toMatchObject({ ROLLCALL_ZONE: { fieldRef } });
    const gateway = { env: { ROLLCALL_ZONE: 'eu-1a' } };
    expect(configOf(await renderChart({ processes: { gateway } }))).toMatchObject({
      balancing: { zone: 'eu-1a', slowStartMs: 30_000 },
    });
  });

  test('reads its routes from a directory, in which they change under its hands', async () => {
    const { volumes, containers } = podOf(await renderChart());
    expect(volumes).toContainEqual({ name: 'files', configMap: { name: GATEWAY } });
    const mount = { name: 'files', mountPath: '/etc/rollcall', readOnly: true };
    expect(containers[0]?.['volumeMounts']).toContainEqual(mount);
  });

  test('has a token for the registry where that asks for one, and else none', async () => {
    const { volumes } = podOf(await renderChart({ registry: { authentication: { mode: 'off' } } }));
    expect(JSON.stringify(volumes)).not.toContain('serviceAccountToken');
    for (const [given, audience] of [
      [{}, 'rollcall'],
      [{ audience: 'shop' }, 'shop'],
      [{ audience: 'api-server' }, undefined],
    ] as const) {
      const objects = await renderChart({ registry: { authentication: given } });
      const meant = audience === undefined ? {} : { audience };
      const serviceAccountToken = { path: 'token', expirationSeconds: 3600, ...meant };
      const projected = { sources: [{ serviceAccountToken }] };
      expect(podOf(objects).volumes).toContainEqual({ name: 'registry-token', projected });
      const mount = { name: 'registry-token', mountPath: '/var/run/secrets/rollcall', readOnly: true };
      expect(podOf(objects).containers[0]?.['volumeMounts']).toContainEqual(mount);
    }
  });

  test('is where Ingress, HTTPRoute and GRPCRoute lead', async () => {
    const route = { enabled: true, parentRefs: [{ name: 'public' }] };
    const gateway = { ingress: { enabled: true }, httpRoute: route, grpcRoute: route };
    const objects = await renderChart({ gateway: PROXIES, processes: { gateway } });
    const kinds = ['Ingress', 'HTTPRoute', 'GRPCRoute'];
    const ways = objects.filter(({ kind }) => kinds.includes(kind));
    expect(ways.map(({ metadata }) => metadata.name)).toEqual([GATEWAY, GATEWAY, GATEWAY]);
    const backend = { service: { name: GATEWAY, port: { name: 'http' } } };
    expect(objectOf(objects, 'Ingress', GATEWAY)['spec']).toEqual({
      rules: [
        {
          http: {
            paths: [
              { path: '/api', pathType: 'Prefix', backend },
              { path: '/pay', pathType: 'Prefix', backend },
              { path: '/unsubscribe', pathType: 'Prefix', backend },
              { path: '/.well-known/jwks.json', pathType: 'Exact', backend },
            ],
          },
        },
      ],
    });
    expect(objectOf(objects, 'HTTPRoute', GATEWAY)['spec']).toMatchObject({
      rules: [
        {
          backendRefs: [{ name: GATEWAY, port: 3000 }],
          matches: [
            { path: { type: 'PathPrefix', value: '/api' } },
            { path: { type: 'PathPrefix', value: '/pay' } },
            { path: { type: 'PathPrefix', value: '/unsubscribe' } },
            { path: { type: 'Exact', value: '/.well-known/jwks.json' } },
          ],
        },
      ],
    });
    // Without matches it is for all services.
    const backendRefs = [{ name: GATEWAY, port: 50_051 }];
    expect(objectOf(objects, 'GRPCRoute', GATEWAY)['spec']).toMatchObject({ rules: [{ backendRefs }] });
  });
});

describe('the keys by which identities are verified', () => {
  const JWKS = '/.well-known/jwks.json';

  test('are led to on every host', async () => {
    const paths = pathsOf(await entrances('gateway', { ingress: { hosts: ['a.example.com', 'b.example.com'] } }));
    expect(paths.Ingress).toEqual(
      ['a.example.com', 'b.example.com'].flatMap((host) => [
        `${host}/api`,
        `${host}/pay`,
        `${host}/unsubscribe`,
        `${host}${JWKS}`,
      ]),
    );
  });

  test('are of the gateway alone', async () => {
    const paths = pathsOf(await entrances('registry'));
    expect(paths).toEqual({ Ingress: ['/api/v1'], HTTPRoute: ['/api/v1'] });
  });

  test('are led to by neither where the values say so', async () => {
    const paths = pathsOf(await entrances('gateway', { ingress: { exactPaths: [] }, httpRoute: { exactPaths: [] } }));
    const prefixes = ['/api', '/pay', '/unsubscribe'];
    expect(paths).toEqual({ Ingress: prefixes, HTTPRoute: prefixes });
  });

  test('are still led to where the pages of payment and communication are not', async () => {
    const paths = pathsOf(await entrances('gateway', { ingress: { morePaths: [] }, httpRoute: { morePaths: [] } }));
    expect(paths).toEqual({ Ingress: ['/api', JWKS], HTTPRoute: ['/api', JWKS] });
  });

  test('are led to by controllers that accept no dots in exact paths', async () => {
    const objects = await entrances('gateway', { ingress: { exactPathType: 'ImplementationSpecific' } });
    const { rules } = objectOf(objects, 'Ingress', GATEWAY)['spec'] as IngressSpec;
    expect(rules[0]?.http.paths).toMatchObject([
      { path: '/api', pathType: 'Prefix' },
      { path: '/pay', pathType: 'Prefix' },
      { path: '/unsubscribe', pathType: 'Prefix' },
      { path: JWKS, pathType: 'ImplementationSpecific' },
    ]);
  });
});

interface IngressSpec {
  readonly rules: readonly {
    readonly host?: string;
    readonly http: { readonly paths: readonly { readonly path: string }[] };
  }[];
}

interface HttpRouteSpec {
  readonly rules: readonly { readonly matches: readonly { readonly path: { readonly value: string } }[] }[];
}

/** The Ingress and the HTTPRoute of a process. */
async function entrances(process: string, { ingress = {}, httpRoute = {} }: Record<string, object> = {}) {
  const values = {
    ingress: { enabled: true, ...ingress },
    httpRoute: { enabled: true, parentRefs: [{ name: 'public' }], ...httpRoute },
  };
  const objects = await renderChart({ gateway: PROXIES, processes: { [process]: values } });
  return objects.filter(({ kind }) => kind === 'Ingress' || kind === 'HTTPRoute');
}

/** What they lead from, by kind. */
function pathsOf(objects: readonly ChartObject[]) {
  const specOf = (wanted: string) => objects.find(({ kind }) => kind === wanted)?.['spec'];
  const ingress = specOf('Ingress') as IngressSpec;
  const httpRoute = specOf('HTTPRoute') as HttpRouteSpec;
  return {
    Ingress: ingress.rules.flatMap(({ host = '', http }) => http.paths.map(({ path }) => `${host}${path}`)),
    HTTPRoute: httpRoute.rules.flatMap(({ matches }) => matches.map(({ path }) => path.value)),
  };
}

describe('the namespace of the clients', () => {
  test('is made, and kept as long as the clients in it', async () => {
    const keep = { 'helm.sh/resource-policy': 'keep' };
    expect(await namespaces()).toEqual([expect.objectContaining({ name: `${NAMESPACE}-clients`, annotations: keep })]);
    const [made] = await namespaces({ crds: { keep: false } });
    expect(made).not.toHaveProperty('annotations');
  });

  test.each<[string, Values]>([
    ['is the release’s', { clients: { namespace: NAMESPACE } }],
    [
      'is that of the other custom resources',
      { customResources: { namespace: 'objects' }, clients: { namespace: 'objects' } },
    ],
    ['is there already', { clients: { createNamespace: false } }],
    ['has nobody to read it', { processes: { gateway: { enabled: false } } }],
  ])('is not made where it %s', async (_what, values) => {
    expect(await namespaces(values)).toEqual([]);
  });
});

describe('a registry that asks for credentials', () => {
  test.each<[string, Values, string]>([
    ['as it is', {}, 'http://rollcall-gateway:3000/.well-known/jwks.json'],
    [
      'at another port',
      { gateway: { ports: { http: { port: 8080 } } } },
      'http://rollcall-gateway:8080/.well-known/jwks.json',
    ],
  ])('knows the keys of the gateway, %s', async (_what, processes, expected) => {
    expect((await gatewayOfRegistry(processes))?.jwksUrl.href).toBe(expected);
  });

  test('asks nobody for keys where there is no gateway', async () => {
    expect(await gatewayOfRegistry({ gateway: { enabled: false } })).toBeUndefined();
  });
});
