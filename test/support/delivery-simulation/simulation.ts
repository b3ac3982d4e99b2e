import { deliveryJobKind, finalizers, labels } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob, DeliveryPolicySpec, DeliveryStrategy } from '@rollcall/crds/types.gen.ts';
import { readSavedState } from '@rollcall/operator/delivery/job/saved-state.ts';
import type {
  EndpointsAnswer,
  JobSnapshot,
  Measurement,
  PodGroup,
  Refusal,
  Surroundings,
  WorkloadView,
} from '@rollcall/operator/delivery/job/snapshot.ts';
import { noObstacles } from '@rollcall/operator/delivery/observe/obstacles.ts';
import { settlePolicy } from '@rollcall/operator/delivery/start/default-policy.ts';
import { isFinished } from '@rollcall/operator/delivery/start/queue.ts';
import { claimOn } from '@rollcall/operator/delivery/workload/claim.ts';
import { templateFingerprint } from '@rollcall/operator/delivery/workload/fingerprint.ts';
import { canaryServiceName } from '@rollcall/operator/delivery/workload/names.ts';
import { podsOf } from '@rollcall/operator/delivery/workload/rollout.ts';
import {
  controllerRevisionKind,
  type Deployment,
  deploymentKind,
  type HttpRoute,
  httpRouteKind,
  type Service,
  serviceKind,
} from '@rollcall/platform/kube/builtin-kinds.ts';
import { createMachinery, type Machinery, type PodFate, type SimulatedReplicaSet } from './deployment-controller.ts';
import { createStore, type Store } from './store.ts';

/** How the new version turns out. */
type Fate = 'good' | 'image missing' | 'never ready' | 'crashes at once' | 'crashes later' | 'unready later';

export interface Scenario {
  readonly strategy: DeliveryStrategy;
  readonly artifact: 'image' | 'binary' | 'same image';
  readonly routed: boolean;
  readonly replicas: number;
  readonly services: number;
  readonly fate: Fate;
  /** How the version does that runs before the job: one of its pods has failed, or all have. */
  readonly standing: 'sound' | 'short' | 'dead';
  /**
   * Whether a policy of the cluster adds to every pod template something that depends on its image.
   */
  readonly amended: boolean;
  /** Whether operators see pods a second late. */
  readonly lagging: boolean;
  /** Whether operators may list EndpointSlices, and whether that works all the time. */
  readonly slices: 'seen' | 'at times' | 'forbidden';
  /**
   * How the Deployment replaces its pods. `one by one`: it never has more than it asks for, and the
   * policy leaves that to it.
   */
  readonly replacing: 'surging' | 'one by one';
  /**
   * How many pods there may be: any number, or as many as a delivery promises to need at most. That
   * is twice as many as the Deployment asks for, or what `maxSurge` adds to it.
   */
  readonly capacity: 'any' | 'tight';
  readonly startupMs: number;
  /** How old pods of a version that fails later become, in ms. */
  readonly failsAtMs: number;
  readonly policy: Pick<DeliveryPolicySpec, 'onFailure' | 'drainSeconds' | 'analysis' | 'blueGreen'> & {
    readonly steps: DeliveryPolicySpec['canary']['steps'];
    readonly maxSurge?: number | string | undefined;
    /** Of rolling updates. */
    readonly bakeSeconds: number;
  };
}

export const OLD_IMAGE = 'registry.example.com/shop:1';
export const NEW_IMAGE = 'registry.example.com/shop:2';

export interface Simulation {
  readonly store: Store;
  readonly machinery: Machinery;
  nowMs: number;
  readonly measurements: Measurement[];
  /** What the API server refuses of the job's changes, since it took all of them. */
  refusal: Refusal | undefined;
  /** @param name of the job; there may be others than that of {@link createSimulation}. */
  observe(name?: string): JobSnapshot | undefined;
  job(name?: string): DeliveryJob | undefined;
  deployment(): Deployment | undefined;
  /**
   * Whether the job does a rolling update, as it was asked to or because there were no pods when it
   * began.
   */
  isRolling(): boolean;
  /** Ready pods of all kinds that a Service selects. */
  serving(service: Service): { readonly images: readonly string[]; readonly ready: number; readonly lost: number };
}

/** Pods that fail by themselves are no fault of the job's until it had time to act. */
const REACTION_MS = 45_000;

/** So long EndpointSlices cannot be listed, and so long they can, in turns. */
const UNAVAILABLE_MS = 7000;

export function createSimulation(scenario: Scenario): Simulation {
  const store = createStore((kind, object) => withDefaults(kind, object, scenario));
  let most = scenario.replicas;
  const machinery = createMachinery(store, fateOf(scenario), () => {
    most = Math.max(most, store.find(deploymentKind, 'shop')?.spec.replicas ?? 0);
    const isTight = scenario.capacity === 'tight' && scenario.standing === 'sound';
    return isTight ? most + mostExtra(scenario, most) : Infinity;
  });
  const policy = policyOf(scenario);
  populate(store, scenario);

  function observe(name = 'job'): JobSnapshot | undefined {
    const job = store.find(deliveryJobKind, name);
    if (job === undefined) return undefined;
    if (isFinished(job) && job.metadata.finalizers?.includes(finalizers.delivery) !== true) return undefined;
    const saved = readSavedState(job, store.find(controllerRevisionKind, name));
    return {
      job,
      policy: saved?.policy ?? settlePolicy(policy, store.find(deploymentKind, 'shop')),
      queue: { ahead: undefined, before: 0, supersededBy: undefined },
      workload: workloadFor(job),
      saved,
      artifact: { fetcherImage: 'registry.example.com/rollcall:1', maxBytes: 1e6, allowPrivateAddresses: false },
      measurements: [...simulation.measurements],
      refusal: simulation.refusal,
      registrations: [],
      now: new Date(simulation.nowMs),
    };
  }

  function workloadFor(job: DeliveryJob): WorkloadView {
    const deployment = store.find(deploymentKind, 'shop');
    const surroundings = surroundingsFor(job);
    const wanted = job.status?.workload?.uid;
    if (deployment === undefined || (wanted !== undefined && deployment.metadata.uid !== wanted)) {
      return wanted === undefined ? { found: 'none' } : { found: 'gone', surroundings };
    }
    const fingerprint = templateFingerprint(deployment.spec.template);
    const replicaSets = groupsOf(deployment).filter(
      ({ pods, current, hash }) => pods.length > 0 || current || hash === job.status?.stableHash,
    );
    const obstacles = { ...noObstacles, abandonedClaim: abandonedClaimOn(deployment) };
    return { found: 'one', cluster: { ...surroundings, ...obstacles, deployment, fingerprint, replicaSets } };
  }

  function abandonedClaimOn(deployment: Deployment): string | undefined {
    const claim = claimOn(deployment);
    const holder = claim === undefined ? undefined : store.find(deliveryJobKind, claim.name);
    const isHeld = holder !== undefined && !isFinished(holder) && holder.status?.startedAt === claim?.startedAt;
    return isHeld ? undefined : claim?.text;
  }

  function surroundingsFor(job: DeliveryJob): Surroundings {
    const isOwn = ({ metadata }: Deployment | Service) => metadata.labels?.[labels.job] === job.metadata.uid;
    const extra = store.list(deploymentKind).find(isOwn);
    const all = store.list(serviceKind);
    const services = all.filter((service) => !isOwn(service));
    const extraServices = new Map<string, Service>();
    for (const { metadata } of services) {
      const beside = all.find((other) => isOwn(other) && other.metadata.name === canaryServiceName(metadata.name));
      if (beside !== undefined) extraServices.set(metadata.name, beside);
    }
    return {
      extra:
        extra === undefined ? undefined : { deployment: extra, pods: groupsOf(extra).find(({ current }) => current) },
      services,
      extraServices,
      routes: scenario.routed ? store.list(httpRouteKind) : undefined,
      endpoints: endpointsOf(all),
    };
  }

  function endpointsOf(services: readonly Service[]): EndpointsAnswer {
    if (scenario.slices === 'forbidden') return 'forbidden';
    const isAway = scenario.slices === 'at times' && Math.floor(simulation.nowMs / UNAVAILABLE_MS) % 2 === 0;
    return isAway ? 'unknown' : new Map(services.map((service) => [service.metadata.name, readyBehind(service)]));
  }

  function readyBehind({ spec }: Service): ReadonlySet<string> {
    const selector = Object.entries(spec?.selector ?? {});
    const pods = machinery.replicaSets.flatMap((set) => (scenario.lagging ? set.seen : set.pods));
    const found = pods.filter(
      ({ ready, labels: own }) => ready && selector.every(([key, value]) => own[key] === value),
    );
    return new Set(found.map(({ name }) => name));
  }

  function groupsOf({ metadata, spec }: Deployment): PodGroup[] {
    const wanted = templateFingerprint(spec.template);
    return machinery.replicaSets
      .filter(({ owner }) => owner === metadata.uid)
      .map((set) => ({
        hash: set.hash,
        revision: set.revision,
        current: set.fingerprint === wanted,
        pods: podViews(scenario.lagging ? set.seen : set.pods),
      }));
  }

  /** A rolling update that goes bad without a fault is seen at its deadline. */
  function reactionMs(): number {
    return simulation.isRolling() ? 3 * REACTION_MS : REACTION_MS;
  }

  const simulation: Simulation = {
    store,
    machinery,
    nowMs: Date.parse('2026-11-21T12:00:00Z'),
    measurements: [],
    refusal: undefined,
    observe,
    job: (name = 'job') => store.find(deliveryJobKind, name),
    deployment: () => store.find(deploymentKind, 'shop'),
    isRolling() {
      const job = store.find(deliveryJobKind, 'job');
      const revision = store.find(controllerRevisionKind, 'job');
      const saved = job === undefined ? undefined : readSavedState(job, revision);
      return (saved?.strategy ?? scenario.strategy) === 'Rolling';
    },
    serving(service) {
      const selector = Object.entries(service.spec?.selector ?? {});
      const pods = [...machinery.replicaSets.flatMap((set) => set.pods), ...machinery.gone].filter((pod) =>
        selector.every(([key, value]) => pod.labels[key] === value),
      );
      const ready = pods.filter((pod) => pod.ready && pod.failedMs === undefined);
      const lost = pods.filter(({ failedMs }) => failedMs !== undefined && simulation.nowMs - failedMs < reactionMs());
      return { images: [...new Set(ready.map(({ image }) => image))], ready: ready.length, lost: lost.length };
    },
  };
  return simulation;
}

function podViews(pods: SimulatedReplicaSet['seen']): PodGroup['pods'] {
  return pods.map(({ name, ready, wasReady, fault }) => ({
    name,
    ready,
    restarts: 0,
    fault,
    ...(ready || wasReady || fault !== undefined ? {} : { isComingUp: true }),
  }));
}

/** How many pods a job may add to so many. */
export function mostExtra({ strategy, policy }: Scenario, replicas: number): number {
  return strategy === 'Canary' && policy.maxSurge !== undefined
    ? podsOf(policy.maxSurge, replicas, Math.ceil)
    : replicas;
}

/** So old do the pods become that fail before the job begins. */
const STANDING_FAILS_MS = 15_000;

function fateOf({ fate, standing, startupMs, failsAtMs, artifact }: Scenario): PodFate {
  return (image, ageMs, index) => {
    const isNew = artifact === 'image' && image === NEW_IMAGE;
    const ready = ageMs >= startupMs;
    const isBad = artifact === 'image' && !isNew && (standing === 'dead' || (standing === 'short' && index === 0));
    if (isBad && ageMs >= STANDING_FAILS_MS) return { ready: false };
    if (!isNew || fate === 'good') return { ready };
    if (fate === 'never ready') return { ready: false };
    if (fate === 'image missing') {
      return {
        ready: false,
        ...(ageMs < 1000 ? {} : { fault: { reason: 'ImagePullFailed', message: 'no such image' } }),
      };
    }
    if (fate === 'crashes at once') {
      return { ready: false, ...(ageMs < 2000 ? {} : { fault: { reason: 'CrashLoop', message: 'it crashes' } }) };
    }
    if (ageMs < failsAtMs) return { ready };
    if (fate === 'unready later') return { ready: false };
    return { ready: false, fault: { reason: 'CrashLoop', message: 'it crashes' } };
  };
}

function policyOf({ policy, routed, strategy, replacing }: Scenario): DeliveryPolicySpec {
  const { steps, maxSurge, bakeSeconds: _, ...rest } = policy;
  return {
    serviceName: 'shop',
    strategy,
    rolling: {
      ...(replacing === 'surging' ? { maxSurge: '25%', maxUnavailable: 0 } : {}),
      progressDeadlineSeconds: 40,
      bakeSeconds: policy.bakeSeconds,
    },
    canary: {
      steps,
      ...(maxSurge === undefined ? {} : { maxSurge }),
      trafficRouter: routed ? 'GatewayAPI' : 'Replicas',
    },
    requireHeartbeat: false,
    supersede: false,
    autoDeploy: false,
    preReleases: false,
    ...rest,
  };
}

function populate(store: Store, { replicas, services, routed, strategy, artifact, replacing }: Scenario): void {
  store.create(deploymentKind, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      name: 'shop',
      namespace: 'default',
      labels: { [labels.service]: 'shop' },
      annotations: { 'rollcall.dev/binary-path': '/app/shop' },
    },
    spec: {
      replicas,
      selector: { matchLabels: { app: 'shop' } },
      progressDeadlineSeconds: 600,
      strategy: {
        type: 'RollingUpdate',
        rollingUpdate:
          replacing === 'surging' ? { maxSurge: '50%', maxUnavailable: 0 } : { maxSurge: 0, maxUnavailable: 1 },
      },
      template: {
        metadata: { labels: { app: 'shop', tier: 'web' } },
        spec: { containers: [{ name: 'shop', image: OLD_IMAGE, env: [{ name: 'A', value: 'b' }] }] },
      },
    },
  });
  const selectors = [{ app: 'shop' }, { tier: 'web', app: 'shop' }].slice(0, services);
  for (const [index, selector] of selectors.entries()) {
    store.create(serviceKind, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: `shop-${index}`, namespace: 'default', annotations: { note: 'of the user' } },
      spec: { ports: [{ port: 80 }], selector },
    });
  }
  if (routed) {
    store.create(httpRouteKind, {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'HTTPRoute',
      metadata: { name: 'shop', namespace: 'default' },
      spec: {
        rules: [
          {
            backendRefs: [
              { name: 'shop-0', port: 80, weight: 3 },
              { name: 'other', port: 80, weight: 1 },
            ],
            filters: [{ type: 'X' }],
          },
        ],
      },
    });
  }
  store.create(deliveryJobKind, {
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'DeliveryJob',
    metadata: { name: 'job', namespace: 'default', finalizers: [finalizers.history] },
    spec: {
      serviceName: 'shop',
      operation: 'Deploy',
      version: '2',
      strategy,
      artifact:
        artifact === 'binary'
          ? { type: 'binary', url: 'https://example.com/shop', checksum: `sha256:${'a'.repeat(64)}` }
          : { type: 'image', url: artifact === 'image' ? NEW_IMAGE : OLD_IMAGE },
      abort: false,
      promote: false,
    },
  });
}

/** Some of what an API server adds to what it is given. */
function withDefaults(
  kind: string,
  object: Record<string, unknown>,
  { amended }: Pick<Scenario, 'amended'>,
): Record<string, unknown> {
  if (kind !== 'Deployment') return object;
  const deployment = object as unknown as Deployment;
  const { template } = deployment.spec;
  const complete = (containers: typeof template.spec.containers) =>
    containers.map((container) => ({
      terminationMessagePath: '/dev/termination-log',
      ...container,
      ...(amended ? { workingDir: `/run/${container.image}` } : {}),
    }));
  const { initContainers } = template.spec;
  const spec = {
    restartPolicy: 'Always',
    ...template.spec,
    containers: complete(template.spec.containers),
    ...(initContainers === undefined ? {} : { initContainers: complete(initContainers) }),
  };
  return {
    ...object,
    spec: {
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } },
      ...deployment.spec,
      template: { ...template, spec },
    },
  };
}

/** What a job that does not succeed leaves as it was. */
export function belongings({ store }: Simulation): unknown {
  const deployment = store.find(deploymentKind, 'shop');
  const { progressDeadlineSeconds, strategy, template } = deployment?.spec ?? {};
  const { 'deployment.kubernetes.io/revision': _, ...annotations } = deployment?.metadata.annotations ?? {};
  const routes: HttpRoute[] = store.list(httpRouteKind);
  return {
    deployment: { progressDeadlineSeconds, strategy, template, annotations },
    services: store
      .list(serviceKind)
      .map(({ metadata, spec }) => ({ name: metadata.name, annotations: metadata.annotations, spec })),
    routes: routes.map(({ metadata, spec }) => ({ name: metadata.name, annotations: metadata.annotations, spec })),
  };
}

/** As {@link belongings}, without what only a running job adds. */
export function userServices({ store }: Simulation): readonly Service[] {
  return store.list(serviceKind).filter(({ metadata }) => metadata.labels?.[labels.job] === undefined);
}
