import type { PodFault } from '@rollcall/operator/delivery/job/snapshot.ts';
import { templateFingerprint } from '@rollcall/operator/delivery/workload/fingerprint.ts';
import { type Deployment, deploymentKind, type PodTemplate } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Store } from './store.ts';

interface SimulatedPod {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly image: string;
  readonly bornMs: number;
  /** Of the pods of its ReplicaSet, when it was made. */
  readonly index: number;
  ready: boolean;
  /** Whether it was ever ready. */
  wasReady: boolean;
  fault: PodFault | undefined;
  /** When it stopped being ready by itself. */
  failedMs: number | undefined;
}

export interface SimulatedReplicaSet {
  readonly owner: string;
  readonly hash: string;
  readonly fingerprint: string;
  readonly template: PodTemplate;
  revision: number;
  replicas: number;
  pods: SimulatedPod[];
  /** As they were a second ago: what a copy that is behind shows. */
  seen: readonly SimulatedPod[];
}

/**
 * How pods of an image fare, as a function of their age in ms, and of how many there were before
 * them.
 */
export type PodFate = (
  image: string,
  ageMs: number,
  index: number,
) => { readonly ready: boolean; readonly fault?: PodFault };

/**
 * Deployments, ReplicaSets and pods, second by second, by the arithmetic of Kubernetes' own
 * controllers.
 */
export interface Machinery {
  readonly replicaSets: SimulatedReplicaSet[];
  tick(nowMs: number): void;
  /** Deletes pods of a ReplicaSet, as a node does that is drained; its controller makes others. */
  evict(set: SimulatedReplicaSet, count: number, nowMs: number): void;
  /** Pods that were lost through no doing of the job, and are not there any more. */
  readonly gone: readonly SimulatedPod[];
}

/** @param capacity how many pods there may be, as a quota says. */
export function createMachinery(store: Store, fate: PodFate, capacity: () => number): Machinery {
  const replicaSets: SimulatedReplicaSet[] = [];
  const progressedMs = new Map<string, { ms: number; mark: string; reason: string }>();
  const gone: SimulatedPod[] = [];
  let podCount = 0;

  function ownOf({ metadata }: Deployment): SimulatedReplicaSet[] {
    return replicaSets.filter(({ owner }) => owner === metadata.uid);
  }

  function newReplicaSetOf(deployment: Deployment): SimulatedReplicaSet {
    const { template } = deployment.spec;
    const fingerprint = templateFingerprint(template);
    const own = ownOf(deployment);
    const highest = Math.max(0, ...own.map(({ revision }) => revision));
    const found = own.find((set) => set.fingerprint === fingerprint);
    const set = found ?? {
      owner: deployment.metadata.uid ?? '',
      hash: fingerprint.slice(0, 10),
      fingerprint,
      template,
      revision: 0,
      replicas: 0,
      pods: [],
      seen: [],
    };
    if (found === undefined) replicaSets.push(set);
    if (set.revision !== highest || highest === 0) set.revision = highest + 1;
    return set;
  }

  function scale(deployment: Deployment): void {
    const set = newReplicaSetOf(deployment);
    const { replicas = 1, strategy, paused } = deployment.spec;
    const others = ownOf(deployment).filter((other) => other !== set);
    const active = others.filter((other) => other.replicas > 0);
    const surge = resolve(strategy?.rollingUpdate?.maxSurge ?? '25%', replicas, Math.ceil);
    const unavailable = resolve(strategy?.rollingUpdate?.maxUnavailable ?? '25%', replicas, Math.floor);
    if (paused === true) {
      scalePaused(set.replicas > 0 ? [set, ...active] : active, replicas, surge);
      return;
    }
    if (active.length === 0) {
      set.replicas = replicas;
      return;
    }
    const total = set.replicas + active.reduce((sum, other) => sum + other.replicas, 0);
    if (set.replicas > replicas) set.replicas = replicas;
    const capacity = Math.min(replicas + Math.max(surge, unavailable === 0 ? 1 : 0) - total, replicas - set.replicas);
    if (capacity > 0) {
      set.replicas += capacity;
      return;
    }
    shrink({ set, active, total }, replicas - unavailable);
  }

  /**
   * What is paused midway keeps its mixture, and is scaled all the same; here by the largest of its
   * parts alone.
   */
  function scalePaused(active: readonly SimulatedReplicaSet[], replicas: number, surge: number): void {
    const [largest] = active.toSorted((a, b) => b.replicas - a.replicas);
    if (largest === undefined) return;
    const allowed = active.length === 1 || replicas === 0 ? replicas : replicas + surge;
    const total = active.reduce((sum, other) => sum + other.replicas, 0);
    largest.replicas = Math.max(0, largest.replicas + allowed - total);
  }

  function shrink(
    { set, active, total }: { set: SimulatedReplicaSet; active: SimulatedReplicaSet[]; total: number },
    minAvailable: number,
  ): void {
    let budget = total - minAvailable - (set.replicas - availableOf(set));
    for (const old of active) {
      const unhealthy = Math.min(old.replicas - availableOf(old), Math.max(0, budget));
      old.replicas -= unhealthy;
      budget -= unhealthy;
    }
    let spare = Math.min(budget, [set, ...active].reduce((sum, other) => sum + availableOf(other), 0) - minAvailable);
    for (const old of active) {
      const cut = Math.min(old.replicas, Math.max(0, spare));
      old.replicas -= cut;
      spare -= cut;
    }
  }

  function populate(set: SimulatedReplicaSet, nowMs: number): void {
    while (set.pods.length < set.replicas && replicaSets.reduce((sum, { pods }) => sum + pods.length, 0) < capacity()) {
      podCount += 1;
      const labels = { ...set.template.metadata?.labels, 'pod-template-hash': set.hash };
      const image = set.template.spec.containers[0]?.image ?? '';
      set.pods.push({
        name: `pod-${podCount}`,
        labels,
        image,
        bornMs: nowMs,
        index: set.pods.length,
        ready: false,
        wasReady: false,
        fault: undefined,
        failedMs: undefined,
      });
    }
    for (const pod of set.pods) {
      const { ready, fault } = fate(pod.image, nowMs - pod.bornMs, pod.index);
      if (pod.ready && !ready) pod.failedMs = nowMs;
      pod.ready = ready;
      pod.wasReady ||= ready;
      pod.fault = fault;
    }
  }

  function depopulate(set: SimulatedReplicaSet): void {
    set.seen = set.pods.map((pod) => ({ ...pod }));
    if (set.pods.length <= set.replicas) return;
    const sorted = set.pods.toSorted((a, b) => Number(b.ready) - Number(a.ready));
    set.pods = sorted.slice(0, set.replicas);
    gone.push(...sorted.slice(set.replicas).filter(({ failedMs }) => failedMs !== undefined));
  }

  function report(deployment: Deployment, nowMs: number): void {
    const set = newReplicaSetOf(deployment);
    const own = ownOf(deployment);
    const existing = own.reduce((sum, { pods }) => sum + pods.length, 0);
    const available = own.reduce((sum, other) => sum + availableOf(other), 0);
    const { replicas = 1, progressDeadlineSeconds = 600 } = deployment.spec;
    const isComplete = set.pods.length === replicas && existing === replicas && available >= replicas;
    const known = progressedMs.get(set.owner) ?? { ms: nowMs, mark: '', reason: 'NewReplicaSetCreated' };
    const mark = `${set.hash} ${set.pods.length} ${existing} ${available}`;
    let { ms, reason } = known;
    const isScaling = known.reason === 'NewReplicaSetAvailable' && known.mark.startsWith(`${set.hash} `);
    if (isComplete) reason = 'NewReplicaSetAvailable';
    else if (!isScaling && mark !== known.mark) [ms, reason] = [nowMs, 'ReplicaSetUpdated'];
    else if (!isScaling && nowMs - ms > progressDeadlineSeconds * 1000) reason = 'ProgressDeadlineExceeded';
    progressedMs.set(set.owner, { ms, mark, reason });
    const { name } = deployment.metadata;
    store.patch(deploymentKind, name, {
      metadata: { annotations: { 'deployment.kubernetes.io/revision': String(set.revision) } },
    });
    store.patchStatus(deploymentKind, name, {
      observedGeneration: deployment.metadata.generation,
      replicas: existing,
      updatedReplicas: set.pods.length,
      readyReplicas: available,
      availableReplicas: available,
      conditions: [
        {
          type: 'Progressing',
          status: reason === 'ProgressDeadlineExceeded' ? 'False' : 'True',
          reason,
          lastUpdateTime: new Date(ms).toISOString(),
        },
        ...(own.some(({ pods, replicas: wanted }) => pods.length < wanted) ? [refused] : []),
      ],
    });
  }

  return {
    replicaSets,
    gone,
    evict(set, count, nowMs) {
      for (const pod of set.pods.slice(0, count)) {
        if (pod.wasReady) gone.push({ ...pod, failedMs: pod.failedMs ?? nowMs });
      }
      set.pods = set.pods.slice(count);
    },
    tick(nowMs) {
      const deployments = store.list(deploymentKind);
      const owners = new Set(deployments.map(({ metadata }) => metadata.uid));
      // Garbage collection.
      for (const set of replicaSets.filter(({ owner }) => !owners.has(owner)))
        replicaSets.splice(replicaSets.indexOf(set), 1);
      for (const deployment of deployments) scale(deployment);
      for (const set of replicaSets) depopulate(set);
      for (const set of replicaSets) populate(set, nowMs);
      for (const deployment of deployments) report(deployment, nowMs);
    },
  };
}

const refused = { type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: 'exceeded quota' };

function availableOf({ pods }: SimulatedReplicaSet): number {
  return pods.filter(({ ready }) => ready).length;
}

function resolve(value: number | string, replicas: number, round: (share: number) => number): number {
  return typeof value === 'number' ? value : round((replicas * Number.parseInt(value, 10)) / 100);
}
