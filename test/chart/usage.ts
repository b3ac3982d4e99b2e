import { labels } from '@rollcall/crds/kinds.ts';
import type { DeliveryPolicySpec } from '@rollcall/crds/types.gen.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { NAMESPACE } from './chart.ts';
import type { ChartCluster } from './cluster.ts';

/** Where Deployments are delivered to. */
export const DELIVERY_NAMESPACE = 'shop';
/** Where Services are imported from. */
export const IMPORT_NAMESPACE = 'web';
/** Where registered names become Services. */
export const DNS_NAMESPACE = `${NAMESPACE}-services`;

const TIMEOUT_MS = 120_000;

/** A running Rollcall to be used in every way that there is. */
export interface Installation {
  readonly cluster: ChartCluster;
  /** Base URL of the registry's API. */
  readonly api: string;
  /** Shown to the registry. */
  readonly token: string;
}

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

async function call(
  { api, token }: Installation,
  request: `${'GET' | 'POST' | 'DELETE'} ${string}`,
  body?: object,
): Promise<Answer> {
  const [method = '', path = ''] = request.split(' ');
  const response = await fetch(`${api}/api/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: JSON.parse(await response.text()) as Answer['body'] };
}

/** @throws unless the answer is 200. */
async function ask(
  installation: Installation,
  request: `${'GET' | 'POST' | 'DELETE'} ${string}`,
  body?: object,
): Promise<Answer['body']> {
  const answer = await call(installation, request, body);
  if (answer.status !== 200) throw new Error(`${request}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

function until(what: string, check: () => Promise<boolean>): Promise<void> {
  return waitUntil(what, check, { timeoutMs: TIMEOUT_MS });
}

async function apply(cluster: ChartCluster, ...items: readonly object[]): Promise<void> {
  const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  await cluster.kubectl(['apply', '--filename=-'], { stdin });
}

function register(installation: Installation, name: string, url = `http://${name}`): Promise<unknown> {
  return ask(installation, 'POST /services/register', { service_name: name, service_url: url });
}

/**
 * Programs that register, report, move, leave, and die. The installation's TTL and retention are a
 * few seconds.
 */
export async function useRegistrations(installation: Installation): Promise<void> {
  const { cluster } = installation;
  await register(installation, 'orders');
  await register(installation, 'orders', 'http://orders-2');
  await ask(installation, 'POST /services/orders/heartbeat');
  await ask(installation, 'POST /webhooks/health', { service_name: 'orders', status: 'up', details: { version: '1' } });
  await ask(installation, 'DELETE /services/orders');
  if ((await call(installation, 'GET /services/nobody')).status !== 404) throw new Error('nobody is registered');
  // A Lease that an earlier life of the name has left.
  await apply(cluster, {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: 'billing', namespace: NAMESPACE, labels: { [labels.heartbeat]: 'true' } },
    spec: { holderIdentity: 'earlier' },
  });
  await register(installation, 'billing');
  const names = () => cluster.kubectl(['get', 'serviceregistrations', '--namespace', NAMESPACE, '--output=name']);
  await until('what sends no heartbeats has expired and is gone', async () => !(await names()).includes('billing'));
}

/**
 * A Service that is imported, changes what it asks for, asks for the impossible, and no longer
 * asks.
 */
export async function useImports(installation: Installation): Promise<void> {
  const { cluster } = installation;
  const kubectl = (...args: string[]) => cluster.kubectl([...args, '--namespace', IMPORT_NAMESPACE]);
  const annotate = (...annotations: string[]) => kubectl('annotate', '--overwrite', 'service', 'front', ...annotations);
  const found = async () => (await call(installation, 'GET /services/front')).body;
  await apply(
    cluster,
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'front', namespace: IMPORT_NAMESPACE, annotations: { 'rollcall.dev/register': 'true' } },
      spec: { ports: [{ port: 80 }] },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'front', namespace: IMPORT_NAMESPACE, labels: { 'kubernetes.io/service-name': 'front' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.1.2.3'], conditions: { ready: true } }],
      ports: [{ port: 80 }],
    },
  );
  await until('the Service is registered', async () => (await found())['service_name'] === 'front');
  await annotate('rollcall.dev/url=http://front.example');
  await until('its URL has changed', async () => (await found())['service_url'] === 'http://front.example');
  const counted = () => kubectl('get', 'events', '--output=jsonpath={.items[*].count}');
  await annotate('rollcall.dev/url=ftp://front.example');
  await until('an Event says that this is impossible', async () => (await counted()) !== '');
  await until('it is said again, of the same Event', async () => {
    await annotate(`example.com/touched=${Date.now()}`);
    return Number(await counted()) > 1;
  });
  await annotate('rollcall.dev/url-', 'rollcall.dev/instances=endpoints');
  await until('its endpoint is registered', async () => (await found())['service_url'] === 'http://10.1.2.3:80');
  await annotate('rollcall.dev/register-');
  await until('it is no longer registered', async () => (await found())['error'] !== undefined);
}

/** A name that is registered, moves, and is left. */
export async function useDns(installation: Installation): Promise<void> {
  const { cluster } = installation;
  const addresses = ['--output=jsonpath={.items[*].endpoints[*].addresses[*]}'];
  const found = () => cluster.kubectl(['get', 'endpointslices', '--namespace', DNS_NAMESPACE, ...addresses]);
  await register(installation, 'mirrored', 'http://10.1.2.3');
  await until('the name is in DNS', async () => (await found()) === '10.1.2.3');
  await register(installation, 'mirrored', 'http://10.1.2.4');
  await until('it has moved', async () => (await found()) === '10.1.2.4');
  await ask(installation, 'DELETE /services/mirrored');
  const services = () => cluster.kubectl(['get', 'services', '--namespace', DNS_NAMESPACE, '--output=name']);
  await until('it is gone', async () => `${await found()}${await services()}` === '');
}

/** The second secret of the service `rolling`. */
const webhook_secret = 'the second secret';

/** Secrets of webhooks, set, replaced, and asked for by a call. */
export async function useWebhooks(installation: Installation): Promise<void> {
  const config = { service_name: 'rolling', endpoints: { ops: 'https://hooks.example/x' } };
  await ask(installation, 'POST /webhooks/config', { ...config, secret: 'the first secret' });
  await ask(installation, 'POST /webhooks/config', {
    ...config,
    secret: webhook_secret,
    webhook_secret: 'the first secret',
  });
}

/** What the delivery of a service starts with. */
function workload(name: string): object[] {
  const metadata = { name, namespace: DELIVERY_NAMESPACE };
  const selector = { app: name };
  return [
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { ...metadata, labels: { [labels.service]: name } },
      spec: {
        replicas: 2,
        selector: { matchLabels: selector },
        template: {
          metadata: { labels: selector },
          spec: { containers: [{ name: 'main', image: `registry.example/${name}:1` }] },
        },
      },
    },
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { selector, ports: [{ port: 80 }] } },
  ];
}

function policy(serviceName: string, spec: Partial<DeliveryPolicySpec>): object {
  const metadata = { name: serviceName, namespace: NAMESPACE };
  const apiVersion = 'rollcall.dev/v1alpha1';
  return { apiVersion, kind: 'DeliveryPolicy', metadata, spec: { serviceName, drainSeconds: 0, ...spec } };
}

async function deploy(installation: Installation, name: string, more: object = {}): Promise<string> {
  const request = { service_name: name, version: '2', artifact_url: `registry.example/${name}:2`, ...more };
  return String((await ask(installation, 'POST /webhooks/deploy', request))['job_id']);
}

/**
 * Every strategy, by the webhooks; each job is seen through to its end in the history, and to its
 * deletion.
 */
export async function useDeliveries(installation: Installation): Promise<void> {
  const { cluster } = installation;
  const services = ['rolling', 'blue-green', 'canary'];
  const route = {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: { name: 'canary', namespace: DELIVERY_NAMESPACE },
    spec: { rules: [{ backendRefs: [{ name: 'canary', port: 80 }] }] },
  };
  await apply(
    cluster,
    ...services.flatMap(workload),
    route,
    policy('rolling', { autoDeploy: true }),
    policy('blue-green', { blueGreen: { bakeSeconds: 0, autoPromote: false } }),
    policy('canary', { canary: { steps: [{ weight: 50, pauseSeconds: 0 }], trafficRouter: 'GatewayAPI' } }),
  );
  const inShop = ['--namespace', DELIVERY_NAMESPACE];
  const stray = policy('stray', {});
  await apply(cluster, { ...stray, metadata: { name: 'stray', namespace: DELIVERY_NAMESPACE } });
  const events = () => cluster.kubectl(['get', 'events', '--output=jsonpath={.items[*].reason}', ...inShop]);
  await until('a policy that nobody reads is reported', async () => (await events()).includes('WrongNamespace'));
  for (const name of services) {
    await cluster.kubectl(['rollout', 'status', `deployment/${name}`, '--timeout=120s', ...inShop]);
  }
  const announced = { service_name: 'rolling', version: '2', artifact_url: 'registry.example/rolling:2' };
  const jobs = [
    String((await ask(installation, 'POST /webhooks/update', { ...announced, webhook_secret }))['job_id']),
    await deploy(installation, 'blue-green', { strategy: 'blue-green' }),
    await deploy(installation, 'canary', { strategy: 'canary' }),
    // Nothing is labelled so: the operator asks for it before it gives up.
    await deploy(installation, 'nobody', { strategy: 'rolling' }),
  ];
  const [, blueGreen = ''] = jobs;
  await until('blue-green waits at its gate', async () => {
    return (await ask(installation, `GET /jobs/${blueGreen}`))['phase'] === 'Paused';
  });
  await ask(installation, `POST /jobs/${blueGreen}/promote`);
  await until('all jobs are in the history', async () => {
    const { history } = (await ask(installation, 'GET /updates/history')) as { history: { service_name: string }[] };
    return new Set(history.map(({ service_name }) => service_name)).size === jobs.length;
  });
  const left = () => cluster.kubectl(['get', 'deliveryjobs', '--namespace', NAMESPACE, '--output=name']);
  await until('and gone from the cluster', async () => (await left()) === '');
  if ((await call(installation, 'GET /jobs/deploy-unknown-1-1')).status !== 404) throw new Error('an unknown job');
}
