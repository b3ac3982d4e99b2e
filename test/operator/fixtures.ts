import { annotations, labels, serviceRegistrationKind } from '@rollcall/crds/kinds.ts';
import type { ObjectMeta } from '@rollcall/crds/object-meta.ts';
import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import { freePorts } from '@rollcall/local/ports.ts';
import { operatorProcess } from '@rollcall/operator/operator.ts';
import { type Clock, systemClock } from '@rollcall/platform/clock.ts';
import {
  type EndpointSlice,
  endpointSliceKind,
  eventKind,
  type KubeEvent,
  type Lease,
  leaseKind,
  type Pod,
  podKind,
  type Service,
  serviceKind,
} from '@rollcall/platform/kube/builtin-kinds.ts';
import { connectByFile, type KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { isNotFound } from '@rollcall/platform/kube/errors.ts';
import { microTime } from '@rollcall/platform/kube/micro-time.ts';
import { collectionPath, type ResourceClient, resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { runProcess } from '@rollcall/platform/process/main.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { inject, type TestContext } from 'vitest';
import { createNamespace } from '../support/kube.ts';

/** The shortest TTL that a registration may have. */
export const TTL_SECONDS = 5;

/** A namespace with clients for all that operators work on. */
export interface World {
  readonly onTestFinished: TestContext['onTestFinished'];
  readonly namespace: string;
  readonly connection: KubeConnection;
  readonly registrations: ResourceClient<ServiceRegistration>;
  readonly leases: ResourceClient<Lease>;
  readonly services: ResourceClient<Service>;
  readonly endpointSlices: ResourceClient<EndpointSlice>;
  /** Events on the object of this name, oldest first. */
  events(name: string): Promise<KubeEvent[]>;
}

/**
 * A namespace of the test's own. Vitest's global `onTestFinished` mixes up tests that run at once.
 */
export async function createWorld({ onTestFinished }: Pick<TestContext, 'onTestFinished'>): Promise<World> {
  const { name: namespace } = await createNamespace('operator');
  const connection = await connectByFile(inject('kubeconfig'), {
    clock: systemClock,
    requestTimeoutMs: 20_000,
    maxSockets: 16,
  });
  onTestFinished(() => connection.close());
  return {
    onTestFinished,
    namespace,
    connection,
    registrations: resourceClient(connection, serviceRegistrationKind, namespace),
    leases: resourceClient(connection, leaseKind, namespace),
    services: resourceClient(connection, serviceKind, namespace),
    endpointSlices: resourceClient(connection, endpointSliceKind, namespace),
    async events(name) {
      const { items } = await connection.request<{ items: KubeEvent[] }>({
        method: 'GET',
        path: collectionPath(eventKind, namespace),
        query: { fieldSelector: `involvedObject.name=${name}` },
      });
      return items
        .filter(({ reason }) => reason !== 'ClusterIPNotAllocated')
        .toSorted((a, b) => a.firstTimestamp.localeCompare(b.firstTimestamp));
    },
  };
}

export interface RunningOperator {
  metrics(): Promise<string>;
  /** Value of the metric whose line begins so; 0 when there is none. */
  metric(prefix: string): Promise<number>;
  /** Stops it gracefully. @returns its exit code. */
  stop(): Promise<number>;
}

export interface OperatorOptions {
  readonly clock?: Clock;
  readonly settings?: Readonly<Record<string, string>>;
  /** By which variables it finds the API server; a pod's with all rights by default. */
  readonly access?: Readonly<Record<string, string>>;
}

/** Runs an operator within this process and waits until it is ready; stopped when the test ends. */
export async function startOperator(
  { namespace, onTestFinished }: World,
  { clock = systemClock, settings = {}, access = inject('podEnvironment') }: OperatorOptions = {},
): Promise<RunningOperator> {
  const [port = 0] = await freePorts(1);
  const requested = Promise.withResolvers<string>();
  const environment = {
    ...access,
    ROLLCALL_NAMESPACE: namespace,
    ROLLCALL_IMPORT_NAMESPACES: namespace,
    ROLLCALL_HOST: '127.0.0.1',
    ROLLCALL_ADMIN_PORT: String(port),
    ROLLCALL_LOG_LEVEL: process.env['TEST_LOG_LEVEL'] ?? 'silent',
    ...settings,
  };
  const running = runProcess(operatorProcess, { environment, clock, stopRequested: requested.promise });
  const stop = () => {
    requested.resolve('the test stops it');
    return running;
  };
  onTestFinished(async () => void (await stop()));
  await until('the operator is ready', async () => (await fetchOk(port, 'readyz')) !== undefined);
  const metrics = async () => (await fetchOk(port, 'metrics')) ?? '';
  return {
    metrics,
    async metric(prefix) {
      const line = (await metrics()).split('\n').find((candidate) => candidate.startsWith(prefix));
      return Number(line?.split(' ').at(-1) ?? 0);
    },
    stop,
  };
}

async function fetchOk(port: number, path: string): Promise<string | undefined> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/${path}`);
    const text = await response.text();
    return response.ok ? text : undefined;
  } catch {
    return undefined;
  }
}

/** Creates a pod that runs nowhere. */
export async function createPod(
  { connection, namespace }: World,
  metadata: Partial<ObjectMeta> & { readonly name: string },
): Promise<Pod> {
  await until('the service account is there', async () => {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts`;
    return (await connection.request<{ items: object[] }>({ method: 'GET', path })).items.length > 0;
  });
  const spec = { containers: [{ name: 'main', image: 'registry.example/shop:1' }] };
  const path = collectionPath(podKind, namespace);
  return connection.request<Pod>({ method: 'POST', path, body: { metadata, spec } });
}

/** Waits until the answer is true. */
export async function until(what: string, check: () => Promise<boolean>, timeoutMs = 20_000): Promise<void> {
  const giveUpAtMs = performance.now() + timeoutMs;
  while (!(await check())) {
    if (performance.now() > giveUpAtMs) throw new Error(`Not within ${timeoutMs / 1000} s: ${what}`);
    await sleep(20);
  }
}

export interface NewRegistration {
  readonly ttlSeconds?: number;
  readonly source?: ServiceRegistration['spec']['source'];
}

/** Creates a registration as the registry does, or as a user does who wants it to stay. */
export function register(
  { registrations, namespace }: World,
  name: string,
  { ttlSeconds, source = 'API' }: NewRegistration = { ttlSeconds: TTL_SECONDS },
): Promise<ServiceRegistration> {
  return registrations.create({
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'ServiceRegistration',
    metadata: { name, namespace },
    spec: {
      serviceName: name,
      url: `http://${name}.example`,
      capabilities: ['rest'],
      source,
      ...(ttlSeconds === undefined ? {} : { ttlSeconds }),
    },
  });
}

/** Creates the Lease of a registration as the registry does. @param renewTime of its last heartbeat. */
export function createLease(
  { leases }: World,
  { metadata, spec, apiVersion, kind }: ServiceRegistration,
  renewTime = now(),
): Promise<Lease> {
  const { name, namespace = '', uid = '' } = metadata;
  return leases.create({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name,
      namespace,
      labels: { [labels.heartbeat]: 'true' },
      annotations: { [annotations.heartbeatAgeMs]: '0' },
      ownerReferences: [{ apiVersion, kind, name, uid }],
    },
    spec: { holderIdentity: uid, leaseDurationSeconds: spec.ttlSeconds ?? TTL_SECONDS, renewTime },
  });
}

/** Registers with a Lease. @returns the registration. */
export async function registerAlive(
  world: World,
  name: string,
  ttlSeconds = TTL_SECONDS,
): Promise<ServiceRegistration> {
  const registration = await register(world, name, { ttlSeconds });
  await createLease(world, registration);
  return registration;
}

/**
 * Renews a Lease as the registry does.
 *
 * @returns false when there is none any more, so that the heartbeat is refused.
 */
export async function heartbeat({ leases }: World, name: string, ageMs = 0): Promise<boolean> {
  const metadata = { annotations: { [annotations.heartbeatAgeMs]: String(ageMs) } };
  try {
    await leases.patch(name, { metadata, spec: { renewTime: now(ageMs) } });
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

/**
 * Waits for the phase.
 *
 * @returns the registration and when it was first seen so, by the monotonic clock.
 */
export async function untilPhase(
  { registrations }: World,
  name: string,
  phase: 'Registered' | 'Expired',
): Promise<ServiceRegistration & { readonly seenAtMs: number }> {
  let found: ServiceRegistration | undefined;
  await until(`${name} is ${phase}`, async () => {
    found = await registrations.find(name);
    return found?.status?.phase === phase;
  });
  if (found === undefined) throw new Error('unreachable');
  return { ...found, seenAtMs: performance.now() };
}

function now(ageMs = 0): string {
  return microTime(new Date(Date.now() - ageMs));
}
