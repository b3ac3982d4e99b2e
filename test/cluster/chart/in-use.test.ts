import { randomUUID } from 'node:crypto';
import { signWebhook } from '@rollcall/client/webhook-signature.ts';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { appDeployment, appService } from '../support/manifests.ts';
import {
  type ClusterNamespace,
  createClusterNamespace,
  noNode,
  sharedCluster,
  waitForRollout,
} from '../support/namespace.ts';
import { slowness } from '../support/traffic.ts';
import { type Access, type Answer, openGateway, openRegistry, registryToken } from './support/access.ts';
import { createApiClient, tokenOf } from './support/api-client.ts';
import { rollcall } from './support/cli.ts';
import { createInstallation, type Installation, noChart, type Values } from './support/installation.ts';
import { type Load, startLoad, type Watched } from './support/load.ts';
import { memberPod } from './support/member.ts';
import { isReady, killProcess, listPods, type PodView, restarts } from './support/pods.ts';

const POLL = { timeout: 120_000, interval: 1000 };
const STEADY = ['steady-1', 'steady-2', 'steady-3'];
const SECRET = 'the secret of the shop';
/** By contract, and as long after it as an operator may take. */
const TTL_MS = 60_000;
const LATE_MS = 10_000;

/** Requests a second that come by the gateway. */
const OUTER_RATE = 40;

const NOTHING_FAILED = { failed: 0, failures: [] };

/**
 * One installation with programs that send heartbeats and look each other up all the time, directly
 * and by the gateway. In order: what is killed in the beginning has expired when its test comes.
 */
describe.skipIf(noChart)('the chart in use', () => {
  let installation: Installation;
  let users: ClusterNamespace;
  let load: Load;
  /** Of clients that come by the gateway. */
  let outerLoad: Load;
  let token: string;
  let values: Values;
  let killedAt = 0;

  beforeAll(async () => {
    users = await createClusterNamespace();
    installation = await createInstallation({ crds: false });
    // No caller is to be stopped by its limit.
    values = {
      delivery: { namespaces: [users.name] },
      dns: { enabled: true },
      gateway: { limits: { premium: 1_000_000 } },
      registry: { namespaces: [users.name] },
    };
    await installation.install(values);
    for (const name of STEADY) {
      const steady = { service_name: name, service_url: `http://${name}.example` };
      const { status, body } = await call('POST', '/services/register', steady);
      if (status !== 200) throw new Error(`${name} was not registered: ${JSON.stringify(body)}`);
    }
    const api = `${installation.registryUrl}/api/v1/services`;
    const targets = STEADY.flatMap((name) => [`POST ${api}/${name}/heartbeat`, `GET ${api}/${name}`, `GET ${api}`]);
    // A name belongs to who registered it.
    const owner = await registryToken(installation.namespace);
    load = await startLoad(users, { name: 'steady', image: image('v1'), token: owner, targets });
    await users.apply(memberPod('member-serves', image('v1'), installation.registryUrl));
    await users.kubectl('wait', '--for=condition=Ready', 'pod/member-serves', '--timeout=120s');
    const client = await createApiClient(installation, 'buyer');
    {
      await using gateway = await openGateway(installation.namespace);
      token = await tokenOf(gateway.url, client);
    }
    {
      await using gateway = await openGateway(installation.namespace, token);
      const outside = { service_name: 'outside', service_url: 'http://outside.example' };
      const { status, body } = await gateway.call('POST', '/registry/services/register', outside);
      if (status !== 200) throw new Error(`outside was not registered: ${JSON.stringify(body)}`);
    }
    const outer = `${installation.gatewayUrl}/api/v1`;
    outerLoad = await startLoad(users, {
      name: 'outer',
      image: image('v1'),
      token,
      rate: OUTER_RATE,
      targets: [
        `GET ${outer}/registry/services/steady-1`,
        `POST ${outer}/registry/services/outside/heartbeat`,
        `GET ${outer}/member-serves/anything`,
      ],
    });
  });
  afterAll(async () => {
    await installation?.[Symbol.asyncDispose]();
    await users?.[Symbol.asyncDispose]();
  });

  /**
   * Does something under both loads.
   *
   * @returns what became of the requests of programs, and of those that came by the gateway.
   */
  async function underLoad(what: () => Promise<void>): Promise<Readonly<Record<'inner' | 'outer', Watched>>> {
    let inner: Watched | undefined;
    const outer = await outerLoad.during(async () => {
      inner = await load.during(what);
    });
    if (inner === undefined) throw new Error('Nothing was watched');
    return { inner, outer };
  }

  /** Through one pod, which is found anew: those of before may be gone. */
  async function call(method: string, path: string, body?: object): Promise<Answer> {
    await using registry = await openRegistry(installation.namespace);
    return await registry.call(method, path, body);
  }

  const registration = async (name: string): Promise<Registration | undefined> => {
    const one = ['get', 'sreg', '--selector', `rollcall.dev/service=${name}`, '--output=json'];
    const { items }: { items: Registration[] } = JSON.parse(await installation.namespace.kubectl(...one));
    return items[0];
  };

  const phaseOf = async (name: string): Promise<string | undefined> => (await registration(name))?.status?.phase;

  /**
   * What must not be lost: who is registered as what, which jobs there are, and what was deployed.
   */
  async function state(): Promise<object> {
    const registered = await Promise.all(STEADY.map(async (name) => (await registration(name))?.metadata.uid));
    const jobs = await installation.namespace.kubectl('get', 'deliveryjobs', '--output=name');
    const history = await call('GET', '/updates/history/shop');
    return { registered, jobs, history };
  }

  test('finds programs that register themselves, and loses those that take leave', async () => {
    const names = ['member-stays', 'member-leaves', 'member-dies'];
    await users.apply(...names.map((name) => memberPod(name, image('v1'), installation.registryUrl)));
    await users.kubectl('wait', '--for=condition=Ready', ...names.map((name) => `pod/${name}`), '--timeout=120s');
    // The operator says so a moment later.
    for (const name of names) await expect.poll(() => phaseOf(name), POLL).toBe('Registered');
    await users.kubectl('delete', 'pod', 'member-leaves');
    await expect.poll(() => registration('member-leaves'), POLL).toBeUndefined();
    // Any replica may answer, and learns of it a moment later.
    await expect.poll(() => call('GET', '/services/member-leaves'), POLL).toMatchObject({ status: 404 });
    killedAt = Date.now();
    // The runtime ends all of a container with its first process, and perhaps this before it has
    // said that it is done.
    await users.kubectl('exec', 'member-dies', '--', '/bin/node', '-e', KILL_MEMBER).catch(() => undefined);
    const exitCode = 'jsonpath={.status.containerStatuses[0].state.terminated.exitCode}';
    await expect.poll(() => users.kubectl('get', 'pod', 'member-dies', `--output=${exitCode}`), POLL).toBe('137');
    expect(await phaseOf('member-dies')).toBe('Registered');
  });

  test('lets clients call a program that has registered itself', async () => {
    await using gateway = await openGateway(installation.namespace);
    const url = `${gateway.url}/api/v1/member-serves/some/thing?a=1`;
    const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
    expect({ status: answer.status, text: await answer.text() }).toEqual({
      status: 200,
      text: 'member-serves /api/v1/some/thing?a=1',
    });
    expect((await fetch(url)).status).toBe(401);
  });

  test('lets pods resolve the name of a program that has registered itself, as long as it lives', async () => {
    await users.apply(memberPod('member-resolved', image('v1'), installation.registryUrl));
    await users.kubectl('wait', '--for=condition=Ready', 'pod/member-resolved', '--timeout=120s');
    const name = `member-resolved.${installation.dnsNamespace}.svc.cluster.local`;
    const resolve = `require('node:dns').resolve4('${name}', (error, found) => console.log(error?.code ?? found.join()))`;
    const answer = async () => (await users.kubectl('exec', 'member-serves', '--', '/bin/node', '-e', resolve)).trim();
    const address = await users.kubectl('get', 'pod', 'member-resolved', '--output=jsonpath={.status.podIP}');
    await expect.poll(answer, POLL).toBe(address);
    await users.kubectl('delete', 'pod', 'member-resolved', '--wait=false');
    await expect.poll(answer, POLL).toBe('ENOTFOUND');
  });

  test('spreads requests over the pods of a headless Service, and loses none when one of them is gone', async () => {
    const names = ['several-1', 'several-2', 'several-3'];
    await users.apply(headlessService('several'), ...names.map((name) => appPod(name, 'several')));
    await users.kubectl('wait', '--for=condition=Ready', ...names.map((name) => `pod/${name}`), '--timeout=120s');
    const service_url = `http://several.${users.name}.svc.cluster.local:8080`;
    expect(await call('POST', '/services/register', { service_name: 'several', service_url })).toMatchObject({
      status: 200,
    });
    await using gateway = await openGateway(installation.namespace);
    const ask = async (): Promise<string> => {
      const answer = await fetch(`${gateway.url}/api/v1/several/x`, { headers: { authorization: `Bearer ${token}` } });
      return answer.status === 200 ? await answer.text() : `status ${answer.status}`;
    };
    const askOften = async (): Promise<ReadonlySet<string>> => {
      const answers = new Set<string>();
      for (let count = 0; count < 60; count += 1) answers.add(await ask());
      return answers;
    };
    await expect.poll(askOften, POLL).toEqual(new Set(names));
    await users.kubectl('delete', 'pod', 'several-2', '--grace-period=0', '--force', '--wait=false');
    const first = await askOften();
    for (const each of first) expect(names).toContain(each);
    await users.apply(appPod('several-4', 'several'));
    const seen = new Set<string>();
    await expect
      .poll(async () => {
        const answers = await askOften();
        for (const each of answers) seen.add(each);
        return answers;
      }, POLL)
      .toEqual(new Set(['several-1', 'several-3', 'several-4']));
    expect(seen.difference(new Set([...names, 'several-4']))).toEqual(new Set());
  });

  test('deploys by a signed webhook and rolls back by the command line, through the gateway, and no request fails', async () => {
    const labels = { 'rollcall.dev/service': 'shop' };
    await users.apply(appDeployment({ name: 'shop', image: image('v1'), replicas: 2, labels }), appService('shop'));
    await waitForRollout(users, 'shop');
    await using registry = await openRegistry(installation.namespace);
    await using gateway = await openGateway(installation.namespace, token);
    const shop = { service_name: 'shop' };
    const config = { ...shop, endpoints: {}, secret: SECRET };
    expect(await registry.call('POST', '/webhooks/config', config)).toMatchObject({ status: 200 });
    const release = { ...shop, version: '2.0.0', artifact_url: image('v2') };
    // The token says who calls, the signature that it is the service's pipeline: each is needed,
    // and neither will do.
    const deploy = '/webhooks/deploy';
    const unsigned = await gateway.call('POST', `/registry${deploy}`, release);
    expect(unsigned).toMatchObject({ status: 401, body: { error: expect.any(String) } });
    await using stranger = await openGateway(installation.namespace);
    const unknown = await callSigned(stranger, deploy, release);
    expect(unknown).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHENTICATED' } } });
    const first = { ...shop, version: '1.0.0', artifact_url: image('v1') };
    expect(await callSigned(gateway, '/webhooks/update', first)).toMatchObject({ status: 200 });
    const traffic = await startTraffic(users);
    const lastUpdate = async (): Promise<unknown> => {
      const { body } = await registry.call('GET', '/updates/history/shop?limit=1');
      return (body as { history: unknown[] }).history[0];
    };
    const started = performance.now();
    const watched = await traffic.during(async () => {
      expect(await callSigned(gateway, deploy, release)).toMatchObject({ status: 200 });
      await expect.poll(lastUpdate, POLL).toMatchObject({ new_version: '2.0.0', status: 'success' });
      expect(await deployed()).toBe(`${image('v2')} 2/2`);
      const back = ['rollback', 'shop', '1.0.0', '--wait', '--timeout', '120'];
      const credentials = { ROLLCALL_WEBHOOK_SECRET: SECRET, ROLLCALL_TOKEN: token };
      await rollcall(`${gateway.url}/api/v1/registry`, back, credentials);
      expect(await deployed()).toBe(`${image('v1')} 2/2`);
    });
    report('deploy and rollback', { clients: watched }, started);
    expect(watched).toMatchObject(NOTHING_FAILED);
  });

  test('expires a program that was killed, and no other', async () => {
    await expect.poll(() => phaseOf('member-dies'), POLL).toBe('Expired');
    const since = Date.parse((await registration('member-dies'))?.status?.phaseSince ?? '');
    console.log(`expired ${((since - killedAt) / 1000).toFixed(1)} s after the kill`);
    // Its last heartbeat was up to half a TTL before it was killed; phaseSince has whole seconds.
    expect(since - killedAt).toBeGreaterThan(TTL_MS / 2 - 5000);
    expect(since - killedAt).toBeLessThan(TTL_MS + LATE_MS * slowness());
    await expect.poll(() => call('GET', '/services/member-dies'), POLL).toMatchObject({ status: 404 });
    expect(await phaseOf('member-stays')).toBe('Registered');
  });

  test.each([
    { what: 'an upgrade that replaces every pod', change: () => installation.upgrade(changed()) },
    { what: 'the rollback of the upgrade', change: () => installation.rollback() },
  ])('loses neither a request nor anything that it knows in $what', async ({ what, change }) => {
    const before = await state();
    const old = new Set(await processPods());
    const started = performance.now();
    const watched = await underLoad(async () => {
      await change();
      // Helm does not wait for those that end, and they serve until then.
      await expect.poll(async () => (await processPods()).filter((name) => old.has(name)), POLL).toEqual([]);
    });
    report(what, watched, started);
    expect(watched).toMatchObject({ inner: NOTHING_FAILED, outer: NOTHING_FAILED });
    expect(await state()).toEqual(before);
  });

  test.skipIf(noNode).each([{ component: 'operator' }, { component: 'postgresql' }, { component: 'redis' }])(
    'serves on when the process of $component is killed, which comes back, and loses nothing',
    async ({ component }) => {
      const before = await state();
      const victim = await victimOf(component);
      const started = performance.now();
      const watched = await underLoad(() => killAndWait(victim));
      report(`kill of ${component}`, watched, started);
      expect(watched).toMatchObject({ inner: NOTHING_FAILED, outer: NOTHING_FAILED });
      expect(await state()).toEqual(before);
    },
  );

  test.skipIf(noNode).each([{ component: 'registry' }, { component: 'gateway' }])(
    'is whole again after the process of a $component is killed, and has lost nothing',
    async ({ component }) => {
      const before = await state();
      const victim = await victimOf(component);
      const started = performance.now();
      // What it was just answering is lost, and what is sent before Kubernetes has noticed.
      const watched = await underLoad(() => killAndWait(victim));
      report(`kill of ${component}`, watched, started);
      // Programs do not come by the gateway.
      expect(watched.inner).toMatchObject(component === 'gateway' ? NOTHING_FAILED : {});
      expect(await underLoad(async () => undefined)).toMatchObject({ inner: NOTHING_FAILED, outer: NOTHING_FAILED });
      expect(await state()).toEqual(before);
    },
  );

  test('works after all of this', async () => {
    expect(await phaseOf('member-stays')).toBe('Registered');
    expect(await installation.test()).toMatch(/Phase:\s+Succeeded/);
  });

  /** Values that change the pods of every process, each time. */
  function changed(): Values {
    return { ...values, defaults: { podAnnotations: { 'example.com/changed': randomUUID() } } };
  }

  /** Image and number of the pods that the Deployment has brought up. */
  function deployed(): Promise<string> {
    const path = '{.spec.template.spec.containers[0].image} {.status.readyReplicas}/{.status.updatedReplicas}';
    return users.kubectl('get', 'deployment', 'shop', `--output=jsonpath=${path}`);
  }

  /** Names of the pods of all processes. */
  async function processPods(): Promise<string[]> {
    const pods = await Promise.all(
      ['operator', 'registry', 'gateway'].map((each) => listPods(installation.namespace, each)),
    );
    return pods.flat().map(({ metadata }) => metadata.name);
  }

  /** A pod of the component; of the operators the one that leads. */
  async function victimOf(component: string): Promise<PodView> {
    const path = '--output=jsonpath={.spec.holderIdentity}';
    // After an upgrade the next one may not lead yet.
    return vi.waitFor(async () => {
      const holder = await installation.namespace.kubectl('get', 'lease', 'operator.rollcall.dev', path);
      const pods = await listPods(installation.namespace, component);
      const victim = pods.find(({ metadata }) => component !== 'operator' || holder.startsWith(`${metadata.name}_`));
      if (victim === undefined) throw new Error(`No ${component} to kill; ${holder} leads`);
      return victim;
    }, POLL);
  }

  async function killAndWait(victim: PodView): Promise<void> {
    const { name } = victim.metadata;
    await killProcess(victim);
    const isBack = async (): Promise<boolean> => {
      const pod = (await listPods(installation.namespace)).find(({ metadata }) => metadata.name === name);
      return pod !== undefined && restarts(pod) > restarts(victim) && isReady(pod);
    };
    await expect.poll(isBack, POLL).toBe(true);
  }
});

/** What a pod runs to kill the program beside it. */
const KILL_MEMBER = `
  const fs = require('node:fs');
  for (const pid of fs.readdirSync('/proc')) {
    if (!/^\\d+$/.test(pid) || Number(pid) === process.pid) continue;
    if (/member/.test(fs.readFileSync('/proc/' + pid + '/cmdline', 'utf8'))) process.kill(Number(pid), 'SIGKILL');
  }
`;

interface Registration {
  readonly metadata: { readonly uid: string };
  /** Of the operator. */
  readonly status?: { readonly phase: string; readonly phaseSince: string };
}

function image(tag: string): string {
  return `${sharedCluster().appRepository}:${tag}`;
}

/** Its name leads to the addresses of its pods. */
function headlessService(name: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name },
    spec: { clusterIP: 'None', selector: { app: name }, ports: [{ name: 'http', port: 8080 }] },
  };
}

/** Answers with its own name. */
function appPod(name: string, app: string): object {
  const container = {
    name: 'app',
    image: image('v1'),
    env: [{ name: 'APP_VERSION', value: name }],
    readinessProbe: { httpGet: { path: '/healthz', port: 8080 }, periodSeconds: 1, timeoutSeconds: 10 },
  };
  const metadata = { name, labels: { app } };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata,
    spec: { terminationGracePeriodSeconds: 1, containers: [container] },
  };
}

/**
 * @param operation below the registry's own `/api/v1`: that is the path which is signed, by
 * whichever door the call comes.
 */
async function callSigned({ url, token }: Access, operation: string, body: object): Promise<Answer> {
  // Laid out as no library would: what is signed has to arrive byte for byte.
  const text = ` ${JSON.stringify(body, undefined, 3)}\n`;
  const headers = {
    'content-type': 'application/json',
    ...(await signWebhook(SECRET, { path: `/api/v1${operation}`, body: text, at: new Date() })),
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  };
  const response = await fetch(`${url}/api/v1/registry${operation}`, { method: 'POST', headers, body: text });
  return { status: response.status, body: await response.json() };
}

/** Of clients of the service that is delivered. */
function startTraffic(namespace: ClusterNamespace): Promise<Load> {
  const targets = [`GET http://shop.${namespace.name}.svc.cluster.local`];
  return startLoad(namespace, { name: 'client', image: image('v1'), targets });
}

function report(what: string, watched: Readonly<Record<string, Watched>>, started: number): void {
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  const counts = Object.entries(watched).map(([name, { requests, failed }]) => `${name} ${failed} of ${requests}`);
  console.log(`${what}: ${seconds} s, requests failed: ${counts.join(', ')}`);
}
