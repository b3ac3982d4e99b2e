import { availableParallelism, loadavg } from 'node:os';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sharedCluster } from '../support/namespace.ts';
import { type Access, openGateway, openRegistry } from './support/access.ts';
import { createApiClient, tokenOf } from './support/api-client.ts';
import { rollcall } from './support/cli.ts';
import { createInstallation, type Installation, noChart } from './support/installation.ts';
import { registeringPod } from './support/member.ts';
import { type PodMemory, readMemory } from './support/memory.ts';
import { isReady, listPods, restarts } from './support/pods.ts';

/** Six processes twice, PostgreSQL, Redis. */
const PODS = 14;
const OF_SUBJECTS = ['communication', 'payment'] as const;
const SERVICES = ['communication', 'federation', 'payment'] as const;
/**
 * How long nobody has done anything when memory is read, so that what starting took is no part of
 * it.
 */
const IDLE_MS = 20_000;
const POLL = { timeout: 120_000, interval: 500 };

/** In order: each test works with what the one before has left. */
describe.skipIf(noChart)('the chart with its defaults', () => {
  let installation: Installation;
  let registry: Access | undefined;
  let readyAt = 0;

  beforeAll(async () => {
    installation = await createInstallation({ crds: true });
  });
  afterAll(async () => {
    await registry?.[Symbol.asyncDispose]();
    await installation?.[Symbol.asyncDispose]();
  });

  const access = async (): Promise<Access> => (registry ??= await openRegistry(installation.namespace));
  const idleMemory = async (): Promise<PodMemory[]> =>
    (await readMemory(installation.namespace)).filter(({ at }) => at > readyAt + IDLE_MS);
  const kubectl = (...args: readonly string[]) => installation.namespace.kubectl(...args);
  /** Asks PostgreSQL as the registry. */
  const psql = (statement: string): Promise<string> => {
    const script = 'PGPASSWORD=$(cat /etc/rollcall/passwords/registry) exec psql --host=rollcall-postgresql-0 "$@"';
    const options = ['--username=registry', '--dbname=rollcall', '--tuples-only', `--command=${statement}`];
    return kubectl('exec', 'rollcall-postgresql-0', '--', 'sh', '-c', script, 'sh', ...options);
  };

  test('is ready at the first attempt of every pod, where the restricted Pod Security Standard is enforced', async () => {
    const started = performance.now();
    await installation.install();
    const seconds = (performance.now() - started) / 1000;
    readyAt = Date.now();
    console.log(
      `helm install: all ready after ${seconds.toFixed(1)} s, load ${loadavg()[0]?.toFixed(1)} on ${cores()}`,
    );
    const pods = await listPods(installation.namespace);
    expect(pods.filter(isReady)).toHaveLength(PODS);
    expect(pods.filter((pod) => restarts(pod) > 0).map(({ metadata }) => metadata.name)).toEqual([]);
  });

  test('takes little memory when nobody uses it', async () => {
    await expect.poll(async () => (await idleMemory()).length, POLL).toBe(PODS);
    const pods = await idleMemory();
    for (const each of pods) console.log(`${each.pod}: ${memoryOf([each])}`);
    console.log(`the whole installation: ${memoryOf(pods)}`);
    expect(sum(pods.map(({ workingSetBytes }) => workingSetBytes))).toBeLessThan(2048 * 2 ** 20);
  });

  test('passes helm test', async () => {
    expect(await installation.test()).toMatch(/Phase:\s+Succeeded/);
    // The pod goes with its success.
    expect(await listPods(installation.namespace, 'test')).toEqual([]);
  });

  test('registers a program, keeps it by heartbeats and shows it to kubectl', async () => {
    const { call, url } = await access();
    const shop = { service_name: 'shop', service_url: 'http://shop.example:8080', capabilities: ['rest'] };
    const unknown = await fetch(`${url}/api/v1/services/shop/heartbeat`, { method: 'POST' });
    expect(unknown.status).toBe(401);
    expect(await call('POST', '/services/register', shop)).toMatchObject({ status: 200, body: { ttl: 60 } });
    expect(await call('POST', '/services/shop/heartbeat')).toMatchObject({ status: 200 });
    expect(await call('GET', '/services/shop')).toMatchObject({ status: 200, body: { service_url: shop.service_url } });
    // The operator says so a moment later.
    await expect
      .poll(() => kubectl('get', 'serviceregistrations'), POLL)
      .toMatch(/^shop +shop +http:\/\/shop\.example:8080 .*Registered/m);
  });

  test('finds its own registry, which the operator has imported', async () => {
    const { call } = await access();
    await expect
      .poll(() => call('GET', '/services/rollcall-registry'), POLL)
      .toMatchObject({
        status: 200,
        body: { service_url: `http://rollcall-registry.${installation.namespace.name}.svc:3001` },
      });
  });

  test('finds its services, each replica by its pod, and the keys of two', async () => {
    for (const name of SERVICES) {
      const shown = () => kubectl('get', 'sreg', `--selector=rollcall.dev/service=${name}`, '--no-headers');
      await expect
        .poll(shown, POLL)
        .toMatch(new RegExp(`^(\\S+ +${name} +rollcall-${name}-\\S+ +http://[\\d.]+:\\d+ +Registered .*\\n?){2}$`));
    }
    for (const name of OF_SUBJECTS) {
      const secret = kubectl('get', 'secret', `rollcall-${name}-vault`, '--output=jsonpath={.data.keys\\.yaml}');
      expect(Buffer.from(await secret, 'base64').toString()).toMatch(/^keys:/);
    }
  });

  test('serves the command line', async () => {
    const { url, token = '' } = await access();
    const listed: { services: { service_name: string }[] } = JSON.parse(
      await rollcall(url, ['services', '--output', 'json']),
    );
    expect(listed.services.map(({ service_name }) => service_name).toSorted()).toEqual([
      ...SERVICES,
      'rollcall-registry',
      'shop',
    ]);
    const member = ['run', '--name', 'member', '--url', 'http://member.example', '--'];
    const inspection = [process.execPath, '-e', LOOK_UP_MEMBER, `${url}/api/v1/services/member`];
    expect(await rollcall(url, [...member, ...inspection], { ROLLCALL_TOKEN: token })).toMatch(/^200$/m);
    await expect(rollcall(url, [...member, ...inspection])).rejects.toThrow(/token/);
    await expect(rollcall(url, ['get', 'member'])).rejects.toThrow(/member/);
  });

  test('registers a pod by the command line of the image in one of its containers, until its end', async () => {
    const { call } = await access();
    const { namespace, registryUrl } = installation;
    const image = sharedCluster().rollcallImage ?? '';
    await namespace.apply(registeringPod({ name: 'program', image, registryUrl }));
    await expect
      .poll(() => call('GET', '/services/program'), POLL)
      .toMatchObject({
        status: 200,
        body: { service_url: 'http://program.example:8080' },
      });
    await kubectl('delete', 'pod', 'program', '--wait=true');
    expect(await call('GET', '/services/program')).toMatchObject({ status: 404 });
  });

  test('lets a client of its API in by the gateway, and nobody else', async () => {
    const client = await createApiClient(installation, 'buyer');
    await using stranger = await openGateway(installation.namespace);
    const token = await tokenOf(stranger.url, client);
    const list = '/registry/services';
    expect(await stranger.call('GET', list)).toMatchObject({
      status: 401,
      body: { error: { code: 'UNAUTHENTICATED' } },
    });
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(`${stranger.url}/api/v1${list}`, { headers });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ services: expect.arrayContaining([expect.anything()]) });
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'x-ratelimit-limit': '1000',
      'x-ratelimit-remaining': '999',
      'x-ratelimit-reset': expect.stringMatching(/^\d+$/),
    });
    for (const name of OF_SUBJECTS) {
      const health = await fetch(`${stranger.url}/api/v1/${name}/health`, { headers });
      expect(await health.json()).toMatchObject({ status: 'healthy', service: name, database: 'connected' });
    }
    const clients = () => kubectl('get', 'apiclients', `--namespace=${installation.clientsNamespace}`);
    await expect.poll(clients, POLL).toMatch(/^buyer +buyer +Premium +\["\*"\] +True/m);
    // One replica has seen the token, the other has not, and both have one key.
    for (let times = 0; times < 4; times += 1) {
      await using access = await openGateway(installation.namespace, token);
      expect(await access.call('GET', list)).toMatchObject({ status: 200 });
    }
  });

  test('lets only its own password into PostgreSQL', async () => {
    const psql = [
      'exec',
      'rollcall-postgresql-0',
      '--',
      'env',
      'PGPASSWORD=wrong',
      'psql',
      // The name of the pod, for its policy lets it ask no DNS; to itself it would be admitted
      // without a password.
      '--host=rollcall-postgresql-0',
    ];
    const query = ['--username=rollcall', '--dbname=rollcall', '--command=select 1'];
    await expect(kubectl(...psql, ...query)).rejects.toThrow(/password authentication failed/);
  });

  test('lets the registry into its own schemas of PostgreSQL alone', async () => {
    const owned = `select string_agg(nspname, ',' order by nspname) from pg_namespace where nspowner = current_user::regrole`;
    expect((await psql(owned)).trim()).toBe('registry,registry_queue');
    expect(Number(await psql('select count(*) from registry.migrations'))).toBeGreaterThan(0);
    await expect(psql('create schema mine')).rejects.toThrow(/permission denied for database/);
    await expect(psql('create role mine')).rejects.toThrow(/permission denied to create role/);
    await expect(psql('create table public.mine ()')).rejects.toThrow(/permission denied for schema public/);
  });

  test('leaves definitions, registrations, clients, the volume and its password when it is uninstalled', async () => {
    await registry?.[Symbol.asyncDispose]();
    registry = undefined;
    await installation.uninstall();
    const kept = [
      'lease.coordination.k8s.io/shop',
      'persistentvolumeclaim/data-rollcall-postgresql-0',
      'secret/rollcall-communication-vault',
      'secret/rollcall-payment-vault',
      'secret/rollcall-postgresql',
      'secret/rollcall-webhooks',
      'serviceregistration.rollcall.dev/shop',
    ];
    // The operator may see the registry's Service go, or not any more; the next one does. So it is with
    // services that leave when no registry is there any more: they expire.
    const mayStay = /^(serviceregistration|lease)\.\S+\/(rollcall-registry|communication|payment|federation)/;
    await expect.poll(async () => (await leftovers()).filter((name) => !mayStay.test(name)), POLL).toEqual(kept);
    const clients = ['get', 'apiclients,secrets', `--namespace=${installation.clientsNamespace}`, '--output=name'];
    expect(await kubectl(...clients)).toBe(
      'apiclient.rollcall.dev/buyer\napiclient.rollcall.dev/rollcall-federation\n' +
        'apiclient.rollcall.dev/rollcall-payment\nsecret/buyer-api-client\n',
    );
  });

  /** All that is in the namespace but for what Kubernetes puts into every one. */
  async function leftovers(): Promise<string[]> {
    const kinds = await kubectl('api-resources', '--namespaced', '--verbs=list', '--output=name');
    const countable = kinds.split('\n').filter((kind) => kind !== '' && !/^events|metrics/.test(kind));
    const names = await kubectl('get', countable.join(','), '--output=name');
    const own = new Set(['configmap/kube-root-ca.crt', 'serviceaccount/default']);
    return names
      .split('\n')
      .filter((name) => name !== '' && !own.has(name))
      .toSorted();
  }
});

/** What `rollcall run` runs: looks up its own registration. */
const LOOK_UP_MEMBER = 'const { status } = await fetch(process.argv[1]); console.log(status)';

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function mebibytes(values: readonly number[]): string {
  return `${(sum(values) / 2 ** 20).toFixed(0)} MiB`;
}

function memoryOf(pods: readonly PodMemory[]): string {
  const workingSet = mebibytes(pods.map(({ workingSetBytes }) => workingSetBytes));
  return `working set ${workingSet}, resident ${mebibytes(pods.map(({ rssBytes }) => rssBytes))}`;
}

function cores(): string {
  return `${availableParallelism()} processors`;
}
