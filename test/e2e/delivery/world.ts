import { randomBytes } from 'node:crypto';
import { deliveryJobKind, deliveryPolicyKind, labels } from '@rollcall/crds/kinds.ts';
import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type {
  AnalysisCheck,
  DeliveryJob,
  DeliveryJobSpec,
  DeliveryPolicy,
  DeliveryPolicySpec,
} from '@rollcall/crds/types.gen.ts';
import { logTail } from '@rollcall/local/processes.ts';
import {
  type ControllerRevision,
  controllerRevisionKind,
  type Deployment,
  deploymentKind,
  eventKind,
  type HttpRoute,
  httpRouteKind,
  type KubeEvent,
  type Pod,
  podKind,
  type Service,
  serviceKind,
} from '@rollcall/platform/kube/builtin-kinds.ts';
import {
  collectionPath,
  type KubeObject,
  type Manifest,
  type ResourceClient,
  resourceClient,
} from '@rollcall/platform/kube/resource-client.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import type { TestContext } from 'vitest';
import { type Replica, startReadyReplica, startReplica } from '../../support/replica.ts';
import type { Cluster } from './cluster.ts';

/** Long enough for a machine that does much else. */
const END_TIMEOUT_MS = 120_000;
const REPLICAS = 3;

/** No waits but those that a test is about. */
export const quick = {
  drainSeconds: 0,
  rolling: { maxSurge: 1, maxUnavailable: 0, progressDeadlineSeconds: 60, bakeSeconds: 0 },
  blueGreen: { bakeSeconds: 0, autoPromote: true },
  canary: {
    steps: [
      { weight: 25, pauseSeconds: 0 },
      { weight: 50, pauseSeconds: 0 },
    ],
    trafficRouter: 'Replicas',
  },
} satisfies Partial<DeliveryPolicySpec>;

/** A namespace with clients for all that jobs read and write. */
export interface World {
  readonly cluster: Cluster;
  readonly namespace: string;
  readonly onTestFinished: TestContext['onTestFinished'];
  readonly jobs: ResourceClient<DeliveryJob>;
  readonly policies: ResourceClient<DeliveryPolicy>;
  readonly deployments: ResourceClient<Deployment>;
  readonly services: ResourceClient<Service>;
  readonly routes: ResourceClient<HttpRoute>;
  readonly revisions: ResourceClient<ControllerRevision>;
  list<T extends KubeObject>(kind: ResourceKind<T>, labelSelector?: string): Promise<readonly T[]>;
  /** Events on the object of this name, oldest first. */
  events(name: string): Promise<readonly KubeEvent[]>;
}

/** A namespace of the test's own, which goes with the control plane. */
export async function createWorld(
  cluster: Cluster,
  { onTestFinished }: Pick<TestContext, 'onTestFinished'>,
): Promise<World> {
  const namespace = `delivery-${randomBytes(4).toString('hex')}`;
  const { connection } = cluster;
  await cluster.kubectl(['create', 'namespace', namespace]);
  const client = <T extends KubeObject>(kind: ResourceKind<T>) => resourceClient(connection, kind, namespace);
  const list = async <T extends KubeObject>(kind: ResourceKind<T>, query: Record<string, string> = {}) => {
    const path = collectionPath(kind, namespace);
    return (await connection.request<{ items: T[] }>({ method: 'GET', path, query })).items;
  };
  return {
    cluster,
    namespace,
    onTestFinished,
    jobs: client(deliveryJobKind),
    policies: client(deliveryPolicyKind),
    deployments: client(deploymentKind),
    services: client(serviceKind),
    routes: client(httpRouteKind),
    revisions: client(controllerRevisionKind),
    list: (kind, labelSelector) => list(kind, labelSelector === undefined ? {} : { labelSelector }),
    events: async (name) => {
      const events = await list(eventKind, { fieldSelector: `involvedObject.name=${name}` });
      return events.toSorted((a, b) => a.firstTimestamp.localeCompare(b.firstTimestamp));
    },
  };
}

export interface OperatorOptions {
  readonly settings?: Readonly<Record<string, string>>;
  readonly waitUntilReady?: boolean;
  /** The cluster's by default. */
  readonly access?: Readonly<Record<string, string>>;
}

/**
 * Runs an operator for the namespace, as a process of its own that can be killed; stopped when the
 * test ends. One that ends by itself, as it could not renew its Lease in time on a busy machine, is
 * started again, as the kubelet does.
 *
 * @returns the first process.
 */
export async function startOperator(
  { cluster, namespace, onTestFinished }: World,
  { settings = {}, waitUntilReady = true, access = cluster.facts.podEnvironment }: OperatorOptions = {},
): Promise<Replica> {
  const start = waitUntilReady ? startReadyReplica : startReplica;
  const script = 'operator/src/main.ts';
  const options = {
    logDirectory: cluster.facts.directory,
    access,
    namespace,
    settings: {
      ROLLCALL_IMPORT: 'false',
      // Nobody has to wait for the Lease of one that was killed: there is never another at the same
      // time.
      ROLLCALL_LEADER_LEASE: `leader-${randomBytes(4).toString('hex')}`,
      // What checks ask is on this machine.
      ROLLCALL_CHECK_ADDRESSES: 'any',
      ROLLCALL_FETCHER_IMAGE: 'registry.example/rollcall:1',
      ...settings,
    },
  };
  const operator = await start(script, options);
  const ports = [Number(new URL(operator.url).port), Number(new URL(operator.adminUrl).port)] as const;
  let current = operator;
  let isOver = false;
  const watching = (async () => {
    while (true) {
      const { signal } = await current.process.exited;
      if (isOver || signal !== null) return;
      current = await startReplica(script, { ...options, ports });
    }
  })();
  onTestFinished(async ({ task }) => {
    isOver = true;
    if (task.result?.state === 'fail') console.error(await logTail(current.process.logFile, 40));
    await current[Symbol.asyncDispose]();
    await watching;
    await current[Symbol.asyncDispose]();
  });
  return operator;
}

/**
 * How the objects of a service were before a job: what has to be so again after one that failed.
 */
export interface Original {
  readonly deployment: Deployment;
  readonly service: Service;
}

const metadata = ({ namespace }: World, name: string) => ({ name, namespace });

/**
 * A Deployment of three pods with the image `registry.example/<name>:1`, and a Service for it;
 * returns when they are ready.
 */
export async function createService(
  world: World,
  name: string,
  { replicas = REPLICAS, labelled = name, wait = true }: { replicas?: number; labelled?: string; wait?: boolean } = {},
): Promise<Original> {
  const selector = { app: name };
  const created = await world.deployments.create({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { ...metadata(world, name), labels: { [labels.service]: labelled } },
    spec: {
      replicas,
      selector: { matchLabels: selector },
      template: {
        metadata: { labels: selector, annotations: { 'example.com/kept': 'yes' } },
        spec: { containers: [{ name: 'main', image: `registry.example/${name}:1`, env: [{ name: 'A', value: 'b' }] }] },
      },
    },
  });
  const service = await world.services.create({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: metadata(world, name),
    spec: { selector, ports: [{ port: 80 }] },
  });
  if (!wait) return { deployment: created, service };
  await until(`${name} is ready`, async () => {
    const { status } = await world.deployments.get(name);
    return status?.readyReplicas === replicas;
  });
  return { deployment: await world.deployments.get(name), service };
}

/** An HTTPRoute of the service's name that leads to it. */
export function createRoute(world: World, name: string): Promise<HttpRoute> {
  return world.routes.create({
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: metadata(world, name),
    spec: { rules: [{ backendRefs: [{ name, port: 80 }] }] },
  });
}

export type PolicyChanges = Partial<Omit<DeliveryPolicySpec, 'serviceName'>>;

/** @param changes to {@link quick}; absent fields get the defaults of the custom resource. */
export function createPolicy(world: World, serviceName: string, changes: PolicyChanges = {}): Promise<DeliveryPolicy> {
  const { apiVersion, kind } = deliveryPolicyKind;
  const manifest: PartialPolicy = {
    apiVersion,
    kind,
    metadata: metadata(world, serviceName === '*' ? 'all' : serviceName),
    spec: { serviceName, ...quick, ...changes },
  };
  return world.policies.create(manifest as Manifest<DeliveryPolicy>);
}

/** The API server fills in the rest. */
interface PartialPolicy {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: Partial<DeliveryPolicySpec>;
}

/** A check by a webhook, twice. */
export function webhookCheck(url: string, rest: Partial<AnalysisCheck> = {}): AnalysisCheck {
  return {
    name: 'verdict',
    initialDelaySeconds: 0,
    intervalSeconds: 1,
    count: 2,
    failureLimit: 0,
    webhook: { url, timeoutSeconds: 5 },
    ...rest,
  };
}

export interface NewJob extends Partial<Pick<DeliveryJobSpec, 'strategy' | 'operation' | 'onlyIfNewer'>> {
  /** `2` by default. */
  readonly version?: string;
  /** The image's tag, which decides what becomes of its pods; the version by default. */
  readonly tag?: string;
  readonly name?: string;
  readonly artifact?: DeliveryJobSpec['artifact'];
}

/** Creates a job as the registry does. @returns its name. */
export async function deploy(world: World, serviceName: string, job: NewJob = {}): Promise<string> {
  const { version = '2', tag = version, operation = 'Deploy', strategy, name, onlyIfNewer } = job;
  const { apiVersion, kind } = deliveryJobKind;
  const made = await world.jobs.create({
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'DeliveryJob',
    metadata: metadata(world, name ?? `deploy-${serviceName}-${version}-${randomBytes(3).toString('hex')}`),
    spec: {
      serviceName,
      operation,
      version,
      artifact: job.artifact ?? { type: 'image', url: `registry.example/${serviceName}:${tag}` },
      abort: false,
      promote: false,
      ...(strategy === undefined ? {} : { strategy }),
      ...(onlyIfNewer === undefined ? {} : { onlyIfNewer }),
    },
  } satisfies Manifest<DeliveryJob> & { apiVersion: typeof apiVersion; kind: typeof kind });
  return made.metadata.name;
}

/** Waits until the job has ended, whichever way, and let go of everything. */
export async function untilEnd({ jobs }: World, name: string): Promise<DeliveryJob> {
  let found: DeliveryJob | undefined;
  await until(
    `${name} has ended`,
    async () => {
      found = await jobs.get(name);
      return found.status?.finishedAt !== undefined && (found.metadata.finalizers ?? []).length === 0;
    },
    { state: () => JSON.stringify(found?.status) },
  );
  if (found === undefined) throw new Error('unreachable');
  return found;
}

/** Waits until the job's status is so. It polls often: a stage may be short. */
export async function untilJob(
  { jobs }: World,
  name: string,
  holds: (status: NonNullable<DeliveryJob['status']>) => boolean,
): Promise<DeliveryJob> {
  let found: DeliveryJob | undefined;
  await until(
    `${name} is as expected`,
    async () => {
      found = await jobs.get(name);
      return found.status !== undefined && holds(found.status);
    },
    { state: () => JSON.stringify(found?.status), intervalMs: 50 },
  );
  if (found === undefined) throw new Error('unreachable');
  return found;
}

interface UntilOptions {
  /** Reported when the answer does not become true. */
  readonly state?: () => string;
  /** Between questions. Dozens of jobs are waited for at once, so asking is much of their work. */
  readonly intervalMs?: number;
}

/** Waits until the answer is true. */
export async function until(
  what: string,
  check: () => Promise<boolean>,
  { state = () => '', intervalMs = 250 }: UntilOptions = {},
): Promise<void> {
  const giveUpAtMs = performance.now() + END_TIMEOUT_MS;
  while (!(await check())) {
    if (performance.now() > giveUpAtMs) throw new Error(`Not within ${END_TIMEOUT_MS / 1000} s: ${what} ${state()}`);
    await sleep(intervalMs);
  }
}

/** What there is of a service, as far as a job may change it. */
export interface State {
  /** The image of the user's Deployment. */
  readonly image: string | undefined;
  readonly version: string | undefined;
  /** Images of the pods that are ready and not about to go, each once. */
  readonly running: readonly string[];
  readonly ready: number;
  readonly selector: Readonly<Record<string, string>> | undefined;
  /** Of the Deployment: what jobs set while they run. */
  readonly strategy: Deployment['spec']['strategy'];
  readonly progressDeadlineSeconds: number | undefined;
  /** Names of what jobs made and should have removed. */
  readonly leftovers: readonly string[];
}

export async function stateOf(world: World, name: string): Promise<State> {
  const [deployment, service, pods, ...made] = await Promise.all([
    world.deployments.find(name),
    world.services.find(name),
    world.list(podKind, `app=${name}`),
    world.list(deploymentKind, labels.job),
    world.list(serviceKind, labels.job),
  ]);
  const ready = pods.filter(isReady);
  const { template, strategy, progressDeadlineSeconds } = deployment?.spec ?? {};
  return {
    image: template?.spec.containers[0]?.image,
    version: deployment?.metadata.annotations?.['rollcall.dev/version'],
    running: [...new Set(ready.map(imageOf))].toSorted(),
    ready: ready.length,
    selector: service?.spec?.selector,
    strategy,
    progressDeadlineSeconds,
    leftovers: made
      .flat()
      .map(({ metadata: { name: left } }) => left)
      .filter((left) => left.startsWith(`${name}-`)),
  };
}

/** What the state has to be when a version was taken to a service, or was not. */
export function expectedState({ deployment, service }: Original, tag: string): State {
  const name = deployment.metadata.name;
  const image = `registry.example/${name}:${tag}`;
  return {
    image,
    version: tag === '1' ? undefined : tag,
    running: [image],
    ready: deployment.spec.replicas ?? 1,
    selector: service.spec?.selector,
    strategy: deployment.spec.strategy,
    progressDeadlineSeconds: deployment.spec.progressDeadlineSeconds,
    leftovers: [],
  };
}

export function isReady({ metadata: { deletionTimestamp }, status }: Pod): boolean {
  const ready = status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true;
  return deletionTimestamp === undefined && ready;
}

/** The images of the pods that a selector finds and that are ready, each once. */
export async function imagesOf(world: World, labelSelector: string): Promise<readonly string[]> {
  const pods = await world.list(podKind, labelSelector);
  return [...new Set(pods.filter(isReady).map(imageOf))].toSorted();
}

function imageOf(pod: Pod): string {
  return pod.spec?.containers[0]?.image ?? '';
}

/** The value of the metric with these labels, among others; undefined when there is none. */
export async function metricOf(
  { adminUrl }: Replica,
  name: string,
  wanted: Readonly<Record<string, string>>,
): Promise<number | undefined> {
  const text = await fetch(`${adminUrl}/metrics`).then((response) => response.text());
  const parts = [`${name}{`, ...Object.entries(wanted).map(([label, value]) => `${label}="${value}"`)];
  const line = text.split('\n').find((candidate) => parts.every((part) => candidate.includes(part)));
  return line === undefined ? undefined : Number(line.split(' ').at(-1));
}
