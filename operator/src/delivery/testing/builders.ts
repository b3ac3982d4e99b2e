import { annotations, finalizers, labels } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob, DeliveryJobStatus, DeliveryStrategy } from '@rollcall/crds/types.gen.ts';
import type { Deployment, HttpRoute, PodTemplate, Service } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Change, Decision } from '../../runtime/decision.ts';
import type { ClusterView, JobSnapshot, PodFault, PodGroup, SavedState, SettledPolicy } from '../job/snapshot.ts';
import { noObstacles } from '../observe/obstacles.ts';
import { templateFingerprint } from '../workload/fingerprint.ts';

export const START = Date.parse('2026-11-21T12:00:00.000Z');
export const OLD = 'registry.example.com/shop:1.0.0';
export const NEW = 'registry.example.com/shop:1.1.0';

export function buildTemplate(
  image: string,
  labelled: Readonly<Record<string, string>> = { app: 'shop' },
): PodTemplate {
  return { metadata: { labels: labelled }, spec: { containers: [{ name: 'shop', image }] } };
}

export function buildPolicy(overrides: Partial<SettledPolicy> = {}): SettledPolicy {
  return {
    serviceName: 'shop',
    strategy: 'Rolling',
    rolling: { maxSurge: '25%', maxUnavailable: 0, progressDeadlineSeconds: 600, bakeSeconds: 0 },
    blueGreen: { bakeSeconds: 60, autoPromote: true },
    canary: { steps: [{ weight: 25, pauseSeconds: 30 }, { weight: 50 }], trafficRouter: 'Replicas' },
    requireHeartbeat: false,
    onFailure: 'RollBack',
    drainSeconds: 30,
    supersede: false,
    autoDeploy: false,
    preReleases: false,
    ...overrides,
  };
}

export function buildPods(
  hash: string,
  count: number,
  options: Partial<PodGroup> & { ready?: number; fault?: PodFault; restarts?: number } = {},
): PodGroup {
  const { ready = count, fault, restarts = 0, ...group } = options;
  const pods = Array.from({ length: count }, (_, index) => ({
    name: `shop-${hash}-${index}`,
    ready: index < ready,
    restarts: index === 0 ? restarts : 0,
    fault: index === 0 ? fault : undefined,
  }));
  return { hash, revision: 1, current: false, pods, ...group };
}

export interface DeploymentWish {
  /** So long ago its controller last saw progress. */
  readonly progressedSeconds?: number;
  readonly name?: string;
  readonly image?: string;
  readonly replicas?: number;
  readonly ready?: number;
  readonly updated?: number;
  readonly generation?: number;
  readonly observedGeneration?: number;
  readonly reason?: string;
  /** Why its controller cannot make pods. */
  readonly complaint?: string;
  readonly metadata?: Partial<Deployment['metadata']>;
  readonly spec?: Partial<Deployment['spec']>;
}

/** Rolled out, unless the wish says otherwise. */
export function buildDeployment(wish: DeploymentWish = {}): Deployment {
  const { name = 'shop', image = OLD, replicas = 3, generation = 1 } = wish;
  const {
    ready = replicas,
    updated = replicas,
    observedGeneration = generation,
    reason = 'NewReplicaSetAvailable',
  } = wish;
  const progressed =
    wish.progressedSeconds === undefined
      ? {}
      : { lastUpdateTime: new Date(START - wish.progressedSeconds * 1000).toISOString() };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${name}`,
      resourceVersion: '10',
      generation,
      labels: { [labels.service]: 'shop' },
      annotations: { 'deployment.kubernetes.io/revision': '7' },
      ...wish.metadata,
    },
    spec: {
      replicas,
      selector: { matchLabels: { app: 'shop' } },
      template: buildTemplate(image),
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '50%', maxUnavailable: '10%' } },
      progressDeadlineSeconds: 300,
      ...wish.spec,
    },
    status: {
      observedGeneration,
      replicas: Math.max(replicas, updated),
      updatedReplicas: updated,
      readyReplicas: ready,
      availableReplicas: ready,
      conditions: [
        { type: 'Progressing', status: 'True', reason, ...progressed },
        ...(wish.complaint === undefined ? [] : [{ type: 'ReplicaFailure', status: 'True', message: wish.complaint }]),
      ],
    },
  };
}

export function buildService(name = 'shop', selector: Readonly<Record<string, string>> = { app: 'shop' }): Service {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'default', uid: `uid-service-${name}`, resourceVersion: '20' },
    spec: { ports: [{ port: 80 }], selector },
  };
}

export function buildRoute(rules: HttpRoute['spec']['rules']): HttpRoute {
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: { name: 'shop', namespace: 'default', uid: 'uid-route', resourceVersion: '30' },
    spec: rules === undefined ? {} : { rules },
  };
}

export function buildJob(
  overrides: {
    spec?: Partial<DeliveryJob['spec']>;
    metadata?: Partial<DeliveryJob['metadata']>;
    status?: DeliveryJobStatus;
  } = {},
): DeliveryJob {
  return {
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'DeliveryJob',
    metadata: {
      name: 'deploy-shop',
      namespace: 'default',
      uid: 'uid-job',
      resourceVersion: '40',
      generation: 1,
      finalizers: [finalizers.history, finalizers.delivery],
      ...overrides.metadata,
    },
    spec: {
      serviceName: 'shop',
      operation: 'Deploy',
      version: '1.1.0',
      artifact: { type: 'image', url: NEW },
      abort: false,
      promote: false,
      ...overrides.spec,
    },
    ...(overrides.status === undefined ? {} : { status: overrides.status }),
  };
}

export function buildCluster(overrides: Partial<ClusterView> = {}): ClusterView {
  const deployment = overrides.deployment ?? buildDeployment();
  return {
    deployment,
    fingerprint: templateFingerprint(deployment.spec.template),
    replicaSets: [buildPods('old', deployment.spec.replicas ?? 1, { current: true })],
    extra: undefined,
    services: [buildService()],
    extraServices: new Map(),
    routes: undefined,
    endpoints: 'forbidden',
    ...noObstacles,
    ...overrides,
  };
}

export function buildSnapshot(overrides: Partial<JobSnapshot> & { cluster?: ClusterView } = {}): JobSnapshot {
  const { cluster = buildCluster(), ...rest } = overrides;
  return {
    job: buildJob(),
    policy: buildPolicy(),
    queue: { ahead: undefined, before: 0, supersededBy: undefined },
    workload: { found: 'one', cluster },
    saved: undefined,
    artifact: { fetcherImage: 'registry.example.com/rollcall:1', maxBytes: 1000, allowPrivateAddresses: false },
    measurements: [],
    registrations: [],
    now: new Date(START),
    ...rest,
  };
}

function buildSaved(strategy: DeliveryStrategy, overrides: Partial<SavedState> = {}): SavedState {
  return {
    deployment: {
      template: buildTemplate(OLD),
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '50%', maxUnavailable: '10%' } },
      progressDeadlineSeconds: 300,
      version: null,
      versionOf: null,
    },
    services: strategy === 'Rolling' ? [] : [{ name: 'shop', selector: { app: 'shop' } }],
    routes: [],
    target: buildTemplate(NEW),
    strategy,
    policy: buildPolicy(),
    ...overrides,
  };
}

export interface StageWish {
  readonly strategy: DeliveryStrategy;
  readonly stage: string;
  readonly seconds?: number;
  readonly cluster?: ClusterView;
  /** Whether the Deployment is claimed by the job; true by default. */
  readonly isClaimed?: boolean;
  readonly saved?: Partial<SavedState>;
  readonly policy?: Partial<SettledPolicy>;
  readonly status?: Partial<DeliveryJobStatus>;
  readonly spec?: Partial<DeliveryJob['spec']>;
  readonly metadata?: Partial<DeliveryJob['metadata']>;
  readonly snapshot?: Partial<JobSnapshot>;
}

/** What stands on the Deployment of {@link buildAtStage}. */
export const CLAIM = `default/deploy-shop/uid-job/${new Date(START - 100_000).toISOString()}`;

/** With the claim of the job, where the Deployment's annotations say nothing of one. */
function claimed(cluster: ClusterView): ClusterView {
  const { deployment } = cluster;
  const { metadata } = deployment;
  const noted = { [annotations.delivering]: CLAIM, ...metadata.annotations };
  return { ...cluster, deployment: { ...deployment, metadata: { ...metadata, annotations: noted } } };
}

/** A job that has been at a stage for so many seconds. */
export function buildAtStage(wish: StageWish): JobSnapshot {
  const { strategy, stage, seconds = 1, cluster = buildCluster(), isClaimed = true } = wish;
  const status: DeliveryJobStatus = {
    phase: 'Progressing',
    stage,
    stageStartedAt: new Date(START - seconds * 1000).toISOString(),
    startedAt: new Date(START - 100_000).toISOString(),
    workload: { namespace: 'default', name: 'shop', uid: 'uid-shop' },
    stableHash: 'old',
    templateFingerprint: templateFingerprint(buildTemplate(OLD)),
    weight: 0,
    ...wish.status,
  };
  return buildSnapshot({
    job: buildJob({
      status,
      ...(wish.spec === undefined ? {} : { spec: wish.spec }),
      ...(wish.metadata === undefined ? {} : { metadata: wish.metadata }),
    }),
    saved: buildSaved(strategy, { policy: buildPolicy(wish.policy), ...wish.saved }),
    cluster: isClaimed ? claimed(cluster) : cluster,
    ...wish.snapshot,
  });
}

/** The extra Deployment, with the pods that it was asked for. */
export function buildExtra(count: number, options: { ready?: number; fault?: PodFault; replicas?: number } = {}) {
  const { replicas = count, ready = count } = options;
  const deployment = buildDeployment({
    name: 'shop-green',
    image: NEW,
    replicas,
    ready,
    metadata: { labels: { [labels.job]: 'uid-job' } },
  });
  return { deployment, pods: buildPods('new', count, { ...options, current: true }) };
}

export function pinnedTo(hash: string): Service {
  return buildService('shop', { app: 'shop', 'pod-template-hash': hash });
}

/** A decision in a few words. */
export function summarize({ changes }: Decision): { status: Partial<DeliveryJobStatus>; does: string[] } {
  const written = changes.find((change) => change.action === 'status');
  const status = written?.action === 'status' ? (written.status as DeliveryJobStatus) : {};
  const { phase, stage, failure } = status as DeliveryJobStatus;
  const progress = { ...(stage === undefined ? {} : { phase, stage }), ...(failure === undefined ? {} : { failure }) };
  return {
    status: progress,
    does: changes.filter(({ action }) => action !== 'status' && action !== 'event').map(summarizeChange),
  };
}

function summarizeChange(change: Change): string {
  if (change.action === 'event' || change.action === 'status') return change.action;
  const { metadata } = 'manifest' in change ? change.manifest : change.object;
  const what = `${change.action} ${change.kind.kind} ${metadata.name}`;
  return change.action === 'patch' ? `${what} ${JSON.stringify(change.patch)}` : what;
}
