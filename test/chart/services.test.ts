import { readHeaderRules } from '@rollcall/federation/subgraphs/headers/rules.ts';
import { parseVaultKeys } from '@rollcall/platform/vault.ts';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { type ChartObject, environmentOf, objectOf, podsOf, renderAnew, renderChart, type Values } from './chart.ts';

const SERVICES = ['communication', 'payment'] as const;

function secretText(objects: readonly ChartObject[], name: string, key: string): string {
  const { data } = objectOf(objects, 'Secret', name) as unknown as { data: Record<string, string> };
  return Buffer.from(data[key] ?? '', 'base64').toString();
}

/** Secrets that a pod sees as files, by the directory. */
function secretsOf(objects: readonly ChartObject[], name: string): Record<string, string> {
  const spec = podsOf(objects).find((pod) => pod.name === `rollcall-${name}`)?.template.spec;
  const volumes = (spec?.volumes ?? []) as readonly { name: string; secret?: { secretName: string } }[];
  const mounts = (spec?.containers[0]?.['volumeMounts'] ?? []) as readonly { name: string; mountPath: string }[];
  return Object.fromEntries(
    mounts.flatMap(({ name: volume, mountPath }) => {
      const secret = volumes.find((candidate) => candidate.name === volume)?.secret?.secretName;
      return secret === undefined ? [] : [[mountPath, secret]];
    }),
  );
}

/** Of the providers, as the object says, or its pods. */
function versionOf(objects: readonly ChartObject[], kind: string, name: string): string | undefined {
  const { metadata, spec } = objectOf(objects, kind, name);
  const pod = (spec as { template?: Pick<ChartObject, 'metadata'> } | undefined)?.template;
  return (pod?.metadata ?? metadata).annotations?.['rollcall.dev/providers-version'];
}

describe.each(SERVICES)('%s', (name) => {
  const directory = '/var/run/secrets/rollcall-';

  test('has keys of its own, which are new ones at each installation, and stay with the data', async () => {
    const [first, second] = [await renderAnew({}), await renderAnew({})];
    const keysOf = (objects: readonly ChartObject[]) =>
      parseVaultKeys(secretText(objects, `rollcall-${name}-vault`, 'keys.yaml'));
    expect(keysOf(first)).toHaveLength(1);
    expect(keysOf(first)).not.toEqual(keysOf(second));
    expect(secretsOf(first, name)).toMatchObject({ [`${directory}vault`]: `rollcall-${name}-vault` });
    expect(secretsOf(first, name)).not.toHaveProperty([`${directory}providers`]);
    expect(environmentOf(first, `rollcall-${name}`)).toMatchObject({
      ROLLCALL_VAULT_KEYS_FILE: `${directory}vault/keys.yaml`,
      ROLLCALL_PROVIDERS_FILE: '',
    });
    const kept = (objects: readonly ChartObject[]) =>
      objectOf(objects, 'Secret', `rollcall-${name}-vault`).metadata.annotations?.['helm.sh/resource-policy'];
    expect(kept(first)).toBe('keep');
    expect(kept(await renderChart({ postgresql: { persistence: { keep: false } } }))).toBeUndefined();
    const urls = {
      registry: 'postgres://a',
      communication: 'postgres://b',
      payment: 'postgres://c',
      federation: 'postgres://d',
    };
    expect(kept(await renderChart({ postgresql: { persistence: { keep: false }, external: { urls } } }))).toBe('keep');
  });

  test('has keys and providers of Secrets that are there', async () => {
    const objects = await renderChart({
      [name]: { vault: { existingSecret: 'my-keys' }, providers: { existingSecret: 'my-providers' } },
    });
    expect(secretsOf(objects, name)).toMatchObject({
      [`${directory}vault`]: 'my-keys',
      [`${directory}providers`]: 'my-providers',
    });
    expect(environmentOf(objects, `rollcall-${name}`)['ROLLCALL_PROVIDERS_FILE']).toBe(
      `${directory}providers/providers.yaml`,
    );
    const made = objects.filter(({ kind, metadata }) => kind === 'Secret' && /-(vault|providers)$/.test(metadata.name));
    expect(made.filter(({ metadata }) => metadata.name.includes(name))).toEqual([]);
  });

  test('has the providers of the values in a Secret alone, and starts anew when they change', async () => {
    const content = { email: [{ kind: 'smtp', password: 'hunter2' }] };
    const objects = await renderAnew({ [name]: { providers: { content } } });
    expect(parse(secretText(objects, `rollcall-${name}-providers`, 'providers.yaml'))).toEqual(content);
    expect(secretsOf(objects, name)).toMatchObject({ [`${directory}providers`]: `rollcall-${name}-providers` });
    const holders = objects.filter((object) => JSON.stringify(object).includes('hunter2'));
    expect(holders).toEqual([]);
    const given = versionOf(objects, 'Secret', `rollcall-${name}-providers`);
    expect(given).toMatch(/^[A-Za-z0-9]{16}$/);
    expect(versionOf(objects, 'Deployment', `rollcall-${name}`)).toBe(given);
    expect(versionOf(await renderChart(), 'Deployment', `rollcall-${name}`)).toBeUndefined();
  });
});

describe.each([...SERVICES, 'federation'])('%s', (name) => {
  test('knows the gateway and the registry, and is registered by the address of its pod', async () => {
    const objects = await renderChart({ gateway: { token: { issuer: 'https://id.example.com' } } });
    expect(environmentOf(objects, `rollcall-${name}`)).toMatchObject({
      ROLLCALL_GATEWAY_KEYS_URL: 'http://rollcall-gateway:3000/.well-known/jwks.json',
      ROLLCALL_GATEWAY_ISSUER: 'https://id.example.com',
      ROLLCALL_REGISTRY_URLS: 'http://rollcall-registry:3001',
      ROLLCALL_POD_IP: { fieldRef: { fieldPath: 'status.podIP' } },
    });
    const pod = podsOf(objects).find((candidate) => candidate.name === `rollcall-${name}`)?.template;
    expect(JSON.stringify(pod?.spec.volumes)).toContain('"audience":"rollcall"');
  });

  test('is not there where it is switched off, with nothing of its own', async () => {
    const objects = await renderChart({ processes: { [name]: { enabled: false } } });
    expect(objects.filter(({ metadata }) => metadata.name.includes(name))).toEqual([]);
  });
});

const HOSTS = { gateway: { trustedProxies: ['10.0.0.0/8'] } };
const route = (hostnames: readonly string[]) => ({ enabled: true, parentRefs: [{ name: 'public' }], hostnames });

test.each<[string, Values, string]>([
  ['the gateway in the cluster', {}, 'http://rollcall-gateway.rollcall:3000'],
  ['what it is told', { publicUrl: 'https://pay.example.com' }, 'https://pay.example.com'],
  [
    'the host of the Ingress',
    { ...HOSTS, processes: { gateway: { ingress: { enabled: true, hosts: ['api.example.com'] } } } },
    'http://api.example.com',
  ],
  [
    'the host of the Ingress with TLS',
    {
      ...HOSTS,
      processes: { gateway: { ingress: { enabled: true, hosts: ['api.example.com'], tls: { enabled: true } } } },
    },
    'https://api.example.com',
  ],
  [
    'the host of the HTTPRoute',
    { ...HOSTS, processes: { gateway: { httpRoute: route(['api.example.com']) } } },
    'https://api.example.com',
  ],
  [
    'the gateway in the cluster, where the host is any',
    { ...HOSTS, processes: { gateway: { httpRoute: route(['*.example.com']) } } },
    'http://rollcall-gateway.rollcall:3000',
  ],
])('the public URL is %s', async (_what, values, url) => {
  const objects = await renderChart(values);
  for (const name of SERVICES) expect(environmentOf(objects, `rollcall-${name}`)['ROLLCALL_PUBLIC_URL']).toBe(url);
});

test('sellers are a file of payment, where there are some', async () => {
  const seller = { name: 'Rollcall (Pty) Ltd', address: ['1 Main Road'], country: 'ZA', vatNumber: '4123456789' };
  const objects = await renderChart({ payment: { sellers: [seller] } });
  const { data } = objectOf(objects, 'ConfigMap', 'rollcall-payment') as unknown as { data: Record<string, string> };
  expect(parse(data['sellers.yaml'] ?? '')).toEqual({ sellers: [seller] });
  expect(environmentOf(objects, 'rollcall-payment')['ROLLCALL_SELLERS_FILE']).toBe('/etc/rollcall/sellers.yaml');
  expect(environmentOf(await renderChart(), 'rollcall-payment')['ROLLCALL_SELLERS_FILE']).toBe('');
});

test('payment has a client of its own, which may send messages, and of which the gateway knows the same secret', async () => {
  const objects = await renderAnew({});
  expect(objectOf(objects, 'ApiClient', 'rollcall-payment')).toMatchObject({
    metadata: { namespace: 'rollcall-clients', annotations: { 'helm.sh/hook': 'post-install,post-upgrade' } },
    spec: { clientId: 'rollcall-payment', scopes: ['messages:send'], secretRef: { name: 'rollcall-payment' } },
  });
  const known = objectOf(objects, 'Secret', 'rollcall-payment');
  expect(known.metadata).toMatchObject({
    namespace: 'rollcall-clients',
    labels: { 'rollcall.dev/api-client': 'true' },
  });
  const secret = secretText(objects, 'rollcall-payment-client', 'secret');
  expect(secret).toMatch(/^[A-Za-z0-9]{32}$/);
  expect(secretText(objects, 'rollcall-payment', 'secret')).toBe(secret);
  expect(secretText(await renderAnew({}), 'rollcall-payment', 'secret')).not.toBe(secret);
  expect(secretsOf(objects, 'payment')).toMatchObject({
    '/var/run/secrets/rollcall-client': 'rollcall-payment-client',
  });
  expect(environmentOf(objects, 'rollcall-payment')).toMatchObject({
    ROLLCALL_CLIENT_ID: 'rollcall-payment',
    ROLLCALL_CLIENT_SECRET_FILE: '/var/run/secrets/rollcall-client/secret',
  });
});

const clientsOf = (objects: readonly ChartObject[]) =>
  objects.filter(({ kind }) => kind === 'ApiClient').map(({ metadata }) => metadata.name);

test('payment has a client that is there, or none where nobody sends mails', async () => {
  const own = await renderChart({ payment: { client: { id: 'billing', existingSecret: 'mine' } } });
  expect(clientsOf(own)).toEqual(['rollcall-federation']);
  expect(secretsOf(own, 'payment')).toMatchObject({ '/var/run/secrets/rollcall-client': 'mine' });
  expect(environmentOf(own, 'rollcall-payment')['ROLLCALL_CLIENT_ID']).toBe('billing');
  const alone = await renderChart({ processes: { communication: { enabled: false } } });
  expect(clientsOf(alone)).toEqual(['rollcall-federation']);
  expect(environmentOf(alone, 'rollcall-payment')['ROLLCALL_CLIENT_ID']).toBe('');
  const nobody = renderChart({ payment: { client: { existingSecret: 'mine' } } });
  await expect(nobody).rejects.toThrow('payment.client.id says whose secret is in payment.client.existingSecret');
});

test('federation has a client by its registered name, which may exchange identities', async () => {
  const objects = await renderAnew({});
  expect(objectOf(objects, 'ApiClient', 'rollcall-federation')).toMatchObject({
    metadata: { namespace: 'rollcall-clients' },
    spec: { clientId: 'federation', scopes: ['identities:exchange'], secretRef: { name: 'rollcall-federation' } },
  });
  const secret = secretText(objects, 'rollcall-federation-client', 'secret');
  expect(secretText(objects, 'rollcall-federation', 'secret')).toBe(secret);
  expect(secret).not.toBe(secretText(objects, 'rollcall-payment-client', 'secret'));
  expect(secretsOf(objects, 'federation')).toEqual({
    '/var/run/secrets/rollcall-client': 'rollcall-federation-client',
  });
  expect(environmentOf(objects, 'rollcall-federation')).toMatchObject({
    ROLLCALL_CLIENT_ID: 'federation',
    ROLLCALL_CLIENT_SECRET_FILE: '/var/run/secrets/rollcall-client/secret',
  });
});

test('federation has a secret that is there, or no client where there is no gateway', async () => {
  const own = await renderChart({ federation: { client: { existingSecret: 'mine' } } });
  expect(clientsOf(own)).toEqual(['rollcall-payment']);
  expect(secretsOf(own, 'federation')).toEqual({ '/var/run/secrets/rollcall-client': 'mine' });
  expect(environmentOf(own, 'rollcall-federation')['ROLLCALL_CLIENT_ID']).toBe('federation');
  const alone = await renderChart({ processes: { gateway: { enabled: false } } });
  expect(clientsOf(alone)).toEqual([]);
  expect(environmentOf(alone, 'rollcall-federation')['ROLLCALL_CLIENT_ID']).toBe('');
});

test('federation reads schemas where services may be, and helm test asks for its health', async () => {
  const objects = await renderChart({ serviceAddresses: 'public' });
  expect(environmentOf(objects, 'rollcall-federation')).toMatchObject({
    ROLLCALL_SERVICE_ADDRESSES: 'public',
    ROLLCALL_TOKEN_AUDIENCE: 'rollcall',
  });
  const asked = { FEDERATION_URL: 'http://rollcall-federation:3002' };
  expect(environmentOf(objects, 'rollcall-test')).toMatchObject(asked);
  const without = await renderChart({ processes: { federation: { enabled: false } } });
  expect(environmentOf(without, 'rollcall-test')).not.toHaveProperty('FEDERATION_URL');
});

test('federation passes header fields on, and what is no rule is refused', async () => {
  const headerRules = {
    all: { request: [{ pass: 'x-*' }], response: [{ pass: 'x-cost', as: 'x-price', merge: 'append' }] },
    services: { shop: { request: [{ set: 'x-from', to: '{{ "graph" }}' }, { remove: 'x-till' }] } },
  };
  const given = environmentOf(await renderChart({ federation: { headerRules } }), 'rollcall-federation');
  const setting = given['ROLLCALL_HEADER_RULES'];
  if (typeof setting !== 'string') throw new Error('It is not there');
  expect(JSON.parse(setting)).toEqual(headerRules);
  expect(readHeaderRules(JSON.parse(setting)).all.request).toMatchObject([{ does: 'pass' }]);
  const wrong = { all: { request: [{ pass: 'x', drop: 'y' }] } };
  await expect(renderChart({ federation: { headerRules: wrong } })).rejects.toThrow(/headerRules/);
});

test('federation shows parts of the graph, and what is no contract is refused', async () => {
  const contracts = { public: { include: ['public'], exclude: ['"{{ internal }}'] } };
  const shown = environmentOf(await renderChart({ federation: { contracts } }), 'rollcall-federation');
  expect(shown['ROLLCALL_CONTRACTS']).toBe(
    JSON.stringify({ public: { exclude: ['"{{ internal }}'], include: ['public'] } }),
  );
  expect(environmentOf(await renderChart(), 'rollcall-federation')['ROLLCALL_CONTRACTS']).toBe('{}');
  await expect(renderChart({ federation: { contracts: { Public: {} } } })).rejects.toThrow(/Public/);
});
