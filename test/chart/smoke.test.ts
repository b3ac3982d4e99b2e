import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { writeVaultKeys } from '@rollcall/local/vault-keys.ts';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type Backend, startBackend, startGateway } from '../gateway/gateway.ts';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import { type RunningService, startReadyReplica } from '../support/replica.ts';
import { CHART, objectOf, renderChart } from './chart.ts';

const AUDIENCE = 'rollcall';
/** The name under which the chart has the registry's Service registered. */
const SELF = 'rollcall-registry';

const resources = new AsyncDisposableStack();
let namespace: TestNamespace;
let registry: RunningService;
let operator: RunningService;
let gateway: RunningService;
let communication: RunningService;
let payment: RunningService;
let federation: RunningService;
/** Has keys, is well, and asks nobody for a token. */
let open: Backend;
let tokenFile: string;
let wrongTokenFile: string;

beforeAll(async () => {
  namespace = await createNamespace('smoke');
  const database = resources.use(await createDatabase());
  const settings = { ROLLCALL_AUTHENTICATION: 'token-review', ROLLCALL_TOKEN_AUDIENCE: AUDIENCE };
  registry = resources.use(await startRegistry({ namespace: namespace.name, databaseUrl: database.url, settings }));
  operator = resources.use(
    await startReadyReplica('operator/src/main.ts', {
      logDirectory: inject('temporaryDirectory'),
      access: inject('podEnvironment'),
      namespace: namespace.name,
      settings: { ROLLCALL_IMPORT_NAMESPACES: namespace.name },
    }),
  );
  await namespace.kubectl(['create', 'serviceaccount', 'tester']);
  tokenFile = join(inject('temporaryDirectory'), `${namespace.name}-token`);
  await writeFile(tokenFile, await namespace.kubectl(['create', 'token', 'tester', '--audience', AUDIENCE]));
  wrongTokenFile = `${tokenFile}-wrong`;
  await writeFile(wrongTokenFile, 'wrong');
  gateway = resources.use(
    await startGateway({
      namespace,
      registry: registry.url,
      settings: { ROLLCALL_TOKEN_FILE: tokenFile, ROLLCALL_REDIS_URL: inject('redisUrl') },
    }),
  );
  communication = resources.use(await startServiceOfSubjects('communication'));
  payment = resources.use(await startServiceOfSubjects('payment'));
  federation = resources.use(await startRegistered('federation', {}));
  open = resources.use(
    await startBackend((_, response) => void response.end(JSON.stringify({ status: 'healthy', keys: [{}] }))),
  );
  // As the chart makes it, for this namespace.
  const { metadata, ...service } = objectOf(await renderChart(), 'Service', SELF);
  const { annotations } = metadata;
  const stdin = JSON.stringify({ ...service, metadata: { name: SELF, annotations } });
  await namespace.kubectl(['apply', '--filename=-'], { stdin });
}, 180_000);

afterAll(() => resources.disposeAsync());

async function startServiceOfSubjects(name: string): Promise<RunningService> {
  return await startRegistered(name, {
    ROLLCALL_VAULT_KEYS_FILE: await writeVaultKeys(
      join(inject('temporaryDirectory'), `${namespace.name}-${name}-keys`),
    ),
    ROLLCALL_PUBLIC_URL: gateway.url,
  });
}

async function startRegistered(name: string, settings: Readonly<Record<string, string>>): Promise<RunningService> {
  const database = resources.use(await createDatabase());
  return await startReadyReplica(`services/${name}/src/main.ts`, {
    logDirectory: inject('temporaryDirectory'),
    access: {},
    namespace: namespace.name,
    settings: {
      ROLLCALL_DATABASE_URL: database.url,
      ROLLCALL_GATEWAY_KEYS_URL: `${gateway.url}/.well-known/jwks.json`,
      ROLLCALL_REGISTRY_URLS: registry.url,
      ROLLCALL_POD_IP: '127.0.0.1',
      ROLLCALL_TOKEN_FILE: tokenFile,
      ...settings,
    },
  });
}

interface Outcome {
  readonly code: number;
  readonly output: string;
}

/** Runs what `helm test` runs in a pod. */
async function smoke(environment: Readonly<Record<string, string>>): Promise<Outcome> {
  const env = {
    PATH: process.env['PATH'],
    REGISTRY_URL: `${registry.url}/api/v1`,
    TOKEN_FILE: tokenFile,
    ...environment,
  };
  const script = join(CHART, 'files', 'test', 'smoke.mjs');
  return promisify(execFile)(process.execPath, [script], { env }).then(
    ({ stdout }) => ({ code: 0, output: stdout }),
    (error: { code: number; stdout: string; stderr: string }) => ({
      code: error.code,
      output: error.stdout + error.stderr,
    }),
  );
}

test('helm test passes where all processes, PostgreSQL and Redis work, and leaves nothing registered', {
  timeout: 180_000,
}, async () => {
  const environment = {
    EXPECTED_SERVICE: SELF,
    GATEWAY_URL: gateway.url,
    REDIS_URL: inject('redisUrl'),
    SERVICE_URLS: `communication=${communication.url} payment=${payment.url}`,
    FEDERATION_URL: federation.url,
    DEADLINE_SECONDS: '40',
  };
  const { code, output } = await smoke(environment);
  expect({ code, output }).toEqual({ code: 0, output: expect.stringMatching(/\nRollcall works\n$/) });
  expect(output).toContain('ok: the operator has registered an annotated Service');
  expect(output).toContain('ok: the gateway lets in nobody without a token');
  expect(output).toContain('ok: Redis answers');
  for (const name of ['communication', 'payment']) {
    expect(output).toContain(`ok: ${name} has registered itself`);
    expect(output).toContain(`ok: the gateway leads providers to ${name}`);
  }
  expect(output).toContain('ok: federation is well');
  expect(output).toContain('ok: federation has registered itself');
  const token = await readFile(tokenFile, 'utf8');
  expect(output).not.toContain(token.slice(-40));
  expect(await namespace.kubectl(['get', 'serviceregistrations', '--output=name'])).not.toContain('helm-test');
});

// All at once: each takes its whole deadline, in which a busy machine has to come to the step that
// fails.
test.concurrent.each<[string, () => Readonly<Record<string, string>>, string]>([
  ['the operator does nothing', () => ({ EXPECTED_SERVICE: 'nobody' }), 'not so: the operator has registered'],
  [
    'the registry is unavailable',
    () => ({ REGISTRY_URL: 'http://127.0.0.1:9/api/v1' }),
    'not so: the registry reaches',
  ],
  ['the gateway is unavailable', () => ({ GATEWAY_URL: 'http://127.0.0.1:9' }), 'not so: the gateway is well'],
  ['anybody is admitted', () => ({ GATEWAY_URL: open.url }), 'not so: the gateway lets in nobody without a token'],
  ['the token is refused', () => ({ TOKEN_FILE: wrongTokenFile }), 'not so: a program registers'],
  ['payment is unavailable', () => ({ SERVICE_URLS: 'payment=http://127.0.0.1:9' }), 'not so: payment is well'],
  ['federation is unavailable', () => ({ FEDERATION_URL: 'http://127.0.0.1:9' }), 'not so: federation is well'],
  [
    'payment is not registered',
    () => ({ SERVICE_URLS: `nobody=${payment.url}` }),
    'not so: nobody has registered itself',
  ],
  [
    'Redis refuses the password',
    () => ({ REDIS_URL: Object.assign(new URL(inject('redisUrl')), { password: 'wrong' }).href }),
    'not so: Redis answers',
  ],
])(
  'helm test fails where %s',
  async (_what, environment, message) => {
    const { code, output } = await smoke({ ...environment(), DEADLINE_SECONDS: '15' });
    expect(code).toBe(1);
    expect(output).toContain(message);
  },
  180_000,
);

test('alerts and dashboards ask for metrics that the processes have', async () => {
  const served = await Promise.all(
    [registry, operator, gateway, communication, payment, federation].map(async ({ adminUrl }) =>
      (await fetch(`${adminUrl}/metrics`)).text(),
    ),
  );
  const known = new Set(served.join('\n').match(/(?<=^# TYPE )\w+/gm) ?? []);
  const files = await Promise.all(
    [
      'alerts.yaml',
      'dashboards/delivery.json',
      'dashboards/federation.json',
      'dashboards/gateway.json',
      'dashboards/registry.json',
      'dashboards/services.json',
    ].map((file) => readFile(join(CHART, 'files', file), 'utf8')),
  );
  const asked = new Set(files.join('\n').match(/\b[a-z_]+(?=\{namespace=)/g) ?? []);
  expect(asked.size).toBeGreaterThan(15);
  // Prometheus' own, and the parts of a histogram.
  const unknown = [...asked].filter((name) => name !== 'up' && !known.has(name.replace(/_(bucket|count|sum)$/, '')));
  expect(unknown).toEqual([]);
});
