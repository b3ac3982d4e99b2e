import { setTimeout as sleep } from 'node:timers/promises';
import { deliveryJobKind, deliveryPolicyKind, labels } from '@rollcall/crds/kinds.ts';
import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { DeliveryPolicy, DeliveryPolicySpec } from '@rollcall/crds/types.gen.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { type Deployment, deploymentKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import { createInformer } from '@rollcall/platform/kube/informer.ts';
import { type KubeObject, type Manifest, resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import type { Bench, BenchContext } from '../bench.ts';
import { median } from '../load/statistics.ts';
import { atLeast, atMost, figure } from '../report.ts';
import { forEachInFlight } from '../stage/fleet.ts';
import { watchPeaks } from '../stage/peaks.ts';
import type { RollcallSubject, Stage } from '../stage/stage.ts';

const NAMESPACE = 'bench-delivery';
const WORKLOADS = 200;
const REPLICAS = 3;
const IN_FLIGHT = 32;
const TIMEOUT_MS = 600_000;
/**
 * Controllers write Events for some seconds after the last pod is ready: what comes next is not to
 * be charged for them.
 */
const CALM_MS = 15_000;
/** What `kubectl rollout` goes by in the peer's turn is what jobs go by in ours. */
const rollingUpdate = { maxSurge: 1, maxUnavailable: 0 };
/** `kubectl rollout` does not wait whether pods stay ready. */
const asPlain = { ...rollingUpdate, bakeSeconds: 0 };

/**
 * 200 services deployed at once, against the same rollouts of the same Deployments without
 * Rollcall.
 */
export const delivery: Bench = {
  name: 'delivery',
  measures: '200 rolling deploys at once, against plain rollouts of the same Deployments',
  workloads: true,
  async run({ stage, log }: BenchContext) {
    await stage.createNamespace(NAMESPACE);
    const names = Array.from({ length: WORKLOADS }, (_, index) => `shop-${String(index).padStart(3, '0')}`);
    await using rollouts = await followDeployments(stage);
    const policy = await createPolicy(stage, asPlain);
    log(`delivery: creating ${WORKLOADS} Deployments`);
    await rollouts.measure(names, 'shop:1', (name) => create(stage, deploymentKind, deploymentOf(name)));
    const operator = await stage.startOperator({ namespace: NAMESPACE });
    const registry = await stage.startRegistry({ namespace: NAMESPACE });

    await using jobs = await followJobs(stage);
    // Controllers of Kubernetes have rolled out by now; ours are to have delivered, too.
    log('delivery: warming up');
    await jobs.measure(names, '2', (name) => deploy(registry, name, 'shop:2'));
    log('delivery: plain rollouts');
    const plain = await rollouts.measure(names, 'shop:3', (name) => setImage(stage, name, 'shop:3'));
    log('delivery: deploys');
    const peaks = watchPeaks([operator]);
    const deployed = await jobs.measure(names, '4', (name) => deploy(registry, name, 'shop:4'));
    log('delivery: plain rollouts again');
    const again = await rollouts.measure(names, 'shop:5', (name) => setImage(stage, name, 'shop:5'));
    log('delivery: deploys that watch their pods for as long as they do by default');
    await resourceClient(stage.kube, deliveryPolicyKind, NAMESPACE).patch(policy, {
      spec: { rolling: { bakeSeconds: null } },
    });
    const baked = await jobs.measure(names, '6', (name) => deploy(registry, name, 'shop:6'));
    log('delivery: plain rollouts once more');
    const last = await rollouts.measure(names, 'shop:7', (name) => setImage(stage, name, 'shop:7'));
    const [operatorPeak = Number.NaN] = await peaks.stop();
    await Promise.all([operator.stop(), registry.stop()]);

    const plainMedian = (median(plain.eachMs) + median(again.eachMs)) / 2;
    const plainAll = (plain.allMs + again.allMs) / 2;
    const besideBaked = (median(again.eachMs) + median(last.eachMs)) / 2;
    return [
      figure('plain rollouts, all done after', plainAll / 1000, 's'),
      figure('plain rollout, median', plainMedian / 1000, 's'),
      figure('deploys, all done after', deployed.allMs / 1000, 's'),
      figure('deploy, median', median(deployed.eachMs) / 1000, 's'),
      figure('deploys with the default bake of 5 s, all done after', baked.allMs / 1000, 's'),
      figure('deploy with the default bake of 5 s, median', median(baked.eachMs) / 1000, 's'),
      atLeast(2 * WORKLOADS, figure('deploys that succeeded', deployed.succeeded + baked.succeeded, '')),
      atMost(1.5, figure('deploy / plain rollout, median', median(deployed.eachMs) / plainMedian, '')),
      figure('deploys / plain rollouts, all done', deployed.allMs / plainAll, ''),
      figure('deploy with the default bake of 5 s / plain rollout, median', median(baked.eachMs) / besideBaked, ''),
      atMost(300, figure('operator, highest memory', operatorPeak, 'MiB')),
    ];
  },
};

interface Timings {
  /** From the first request until the last was done. */
  readonly allMs: number;
  /** From each one's request until it was done. */
  readonly eachMs: readonly number[];
}

/** Sends a request for each name and measures the time until all are done. */
async function time(
  names: readonly string[],
  doneAt: ReadonlyMap<string, number>,
  request: (name: string) => Promise<void>,
): Promise<Timings> {
  await sleep(CALM_MS);
  const requestedAt = new Map<string, number>();
  const startedAt = performance.now();
  await forEachInFlight(names.length, IN_FLIGHT, async (index) => {
    const name = names[index] ?? '';
    requestedAt.set(name, performance.now());
    await request(name);
  });
  await waitUntil('all are done', async () => names.every((name) => doneAt.has(name)), { timeoutMs: TIMEOUT_MS });
  const ends = names.map((name) => doneAt.get(name) ?? Number.NaN);
  return {
    allMs: Math.max(...ends) - startedAt,
    eachMs: names.map((name, index) => (ends[index] ?? Number.NaN) - (requestedAt.get(name) ?? Number.NaN)),
  };
}

async function followDeployments(stage: Stage) {
  const informer = follow<Deployment>(stage, deploymentKind);
  informer.start();
  await informer.synced;
  return {
    /** @param image what each runs when it is done. */
    async measure(names: readonly string[], image: string, request: (name: string) => Promise<void>): Promise<Timings> {
      const doneAt = new Map<string, number>();
      informer.onChange(({ object }) => {
        const { name } = object.metadata;
        if (!doneAt.has(name) && runs(object, image)) doneAt.set(name, performance.now());
      });
      return time(names, doneAt, request);
    },
    [Symbol.asyncDispose]: () => informer.stop(),
  };
}

/** What `kubectl rollout status` waits for. */
function runs({ metadata, spec, status }: Deployment, image: string): boolean {
  return (
    spec.template.spec.containers[0]?.image === image &&
    status?.observedGeneration === metadata.generation &&
    status?.updatedReplicas === REPLICAS &&
    status.replicas === REPLICAS &&
    status.availableReplicas === REPLICAS
  );
}

async function followJobs(stage: Stage) {
  const informer = follow(stage, deliveryJobKind);
  informer.start();
  await informer.synced;
  return {
    /** @param version what each job brings. */
    async measure(
      names: readonly string[],
      version: string,
      request: (name: string) => Promise<void>,
    ): Promise<Timings & { readonly succeeded: number }> {
      const doneAt = new Map<string, number>();
      let succeeded = 0;
      informer.onChange(({ object: { spec, status } }) => {
        const isDone = status?.finishedAt !== undefined && spec.version === version;
        if (!isDone || doneAt.has(spec.serviceName)) return;
        doneAt.set(spec.serviceName, performance.now());
        if (status.phase === 'Succeeded') succeeded += 1;
      });
      const timings = await time(names, doneAt, request);
      return { ...timings, succeeded };
    },
    [Symbol.asyncDispose]: () => informer.stop(),
  };
}

function follow<T extends KubeObject>(stage: Stage, kind: ResourceKind<T>) {
  const log = createLogger('bench', 'silent');
  return createInformer<T>({ connection: stage.kube, kind, namespace: NAMESPACE, clock: systemClock, log });
}

function deploymentOf(name: string): Manifest<Deployment> {
  const podLabels = { app: name };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, labels: { [labels.service]: name } },
    spec: {
      replicas: REPLICAS,
      selector: { matchLabels: podLabels },
      strategy: { type: 'RollingUpdate', rollingUpdate },
      template: { metadata: { labels: podLabels }, spec: { containers: [{ name: 'shop', image: 'shop:1' }] } },
    },
  };
}

/** @returns the name of a policy for all services. */
async function createPolicy(stage: Stage, rolling: Partial<DeliveryPolicySpec['rolling']>): Promise<string> {
  const name = 'all';
  await stage.kube.request<DeliveryPolicy>({
    method: 'POST',
    path: `/apis/${deliveryPolicyKind.apiVersion}/namespaces/${NAMESPACE}/${deliveryPolicyKind.plural}`,
    body: {
      apiVersion: deliveryPolicyKind.apiVersion,
      kind: deliveryPolicyKind.kind,
      metadata: { name },
      spec: { serviceName: '*', rolling },
    },
  });
  return name;
}

async function create<T extends KubeObject>(stage: Stage, kind: ResourceKind<T>, manifest: Manifest<T>): Promise<void> {
  await resourceClient(stage.kube, kind, NAMESPACE).create(manifest);
}

async function setImage(stage: Stage, name: string, image: string): Promise<void> {
  const patch = { spec: { template: { spec: { containers: [{ name: 'shop', image }] } } } };
  await resourceClient(stage.kube, deploymentKind, NAMESPACE).patch(name, patch);
}

async function deploy(registry: RollcallSubject, name: string, image: string): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${registry.port}/api/v1/webhooks/deploy`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ service_name: name, version: image.split(':')[1], artifact_url: image }),
  });
  if (response.status !== 200) throw new Error(`The registry answered ${response.status}: ${await response.text()}`);
  await response.body?.cancel();
}
