import { finalizers, labels } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import type { ContainerStatus, Deployment, Pod, ReplicaSet } from '@rollcall/platform/kube/builtin-kinds.ts';
import { isFinished } from '../start/queue.ts';
import { templateFingerprint } from '../workload/fingerprint.ts';
import { HASH_LABEL, REVISION_ANNOTATION } from '../workload/names.ts';

/** `kubectl apply` keeps a copy of the whole object in it. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';
/** What a container said at its end may be as long as its log. */
const MESSAGE_LIMIT = 512;

/**
 * A ReplicaSet with, in the place of its pod template, a digest of it that can be compared with
 * that of its Deployment's.
 */
export interface DigestedReplicaSet extends ReplicaSet {
  readonly spec: ReplicaSet['spec'] & { readonly templateFingerprint?: string };
}

/** Of jobs that have ended, which pile up, only what queues, metrics and owners need. */
export function trimJob(job: DeliveryJob): DeliveryJob {
  const { status } = job;
  const metadata = withoutLastApplied(job.metadata);
  if (status === undefined || !isFinished(job) || metadata.finalizers?.includes(finalizers.delivery) === true) {
    return { ...job, metadata };
  }
  const { phase, startedAt, finishedAt } = status;
  return {
    ...job,
    metadata,
    status: {
      phase,
      ...(startedAt === undefined ? {} : { startedAt }),
      ...(finishedAt === undefined ? {} : { finishedAt }),
    },
  };
}

/** The pod template stays whole: it is saved, patched and given back. */
export function trimDeployment(deployment: Deployment): Deployment {
  return { ...deployment, metadata: withoutLastApplied(deployment.metadata) };
}

export function trimReplicaSet({ apiVersion, kind, metadata, spec, status }: DigestedReplicaSet): DigestedReplicaSet {
  const revision = metadata.annotations?.[REVISION_ANNOTATION];
  const { template } = spec;
  return {
    apiVersion,
    kind,
    metadata: {
      ...identityOf(metadata),
      ...(metadata.creationTimestamp === undefined ? {} : { creationTimestamp: metadata.creationTimestamp }),
      labels: pick(metadata.labels, [HASH_LABEL]),
      ...(revision === undefined ? {} : { annotations: { [REVISION_ANNOTATION]: revision } }),
    },
    spec: {
      ...(spec.replicas === undefined ? {} : { replicas: spec.replicas }),
      ...(template === undefined ? {} : { templateFingerprint: fingerprintOf(template) }),
    },
    ...(status === undefined ? {} : { status }),
  };
}

/**
 * The Deployment's template is the ReplicaSet's without the label by which the ReplicaSet
 * distinguishes its pods.
 */
function fingerprintOf(template: NonNullable<ReplicaSet['spec']['template']>): string {
  const { [HASH_LABEL]: _, ...kept } = template.metadata?.labels ?? {};
  return templateFingerprint({ ...template, metadata: { ...template.metadata, labels: kept } });
}

/** Whose it is, where it is reached, whether it is ready and what its containers suffer from. */
export function trimPod({ apiVersion, kind, metadata, status }: Pod): Pod {
  const known = {
    ...(status?.phase === undefined ? {} : { phase: status.phase }),
    ...(status?.podIP === undefined ? {} : { podIP: status.podIP }),
    ...(status?.startTime === undefined ? {} : { startTime: status.startTime }),
    conditions: status?.conditions?.filter(isReported).map(trimCondition) ?? [],
    containerStatuses: status?.containerStatuses?.map(trimContainer) ?? [],
    initContainerStatuses: status?.initContainerStatuses?.map(trimContainer) ?? [],
  };
  return {
    apiVersion,
    kind,
    metadata: { ...identityOf(metadata), labels: pick(metadata.labels, [HASH_LABEL, labels.job]) },
    ...(status === undefined ? {} : { status: known }),
  };
}

type PodCondition = NonNullable<NonNullable<Pod['status']>['conditions']>[number];

/** Whether it is ready, and what it waits for where it has no node yet. */
function isReported({ type, status }: PodCondition): boolean {
  return type === 'Ready' || (type === 'PodScheduled' && status !== 'True');
}

function trimCondition({ type, status, reason, message, lastTransitionTime }: PodCondition): PodCondition {
  if (status === 'True') return { type, status };
  return {
    type,
    status,
    ...(lastTransitionTime === undefined ? {} : { lastTransitionTime }),
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message: message.slice(0, MESSAGE_LIMIT) }),
  };
}

function trimContainer({ name, ready, restartCount, state, lastState }: ContainerStatus): ContainerStatus {
  const { waiting, terminated } = state ?? {};
  const last = lastState?.terminated;
  return {
    name,
    ready,
    restartCount,
    ...(waiting === undefined ? {} : { state: { waiting: shorten(waiting) } }),
    ...(terminated === undefined ? {} : { state: { terminated: endOf(terminated) } }),
    ...(last === undefined ? {} : { lastState: { terminated: endOf(last) } }),
  };
}

type Terminated = NonNullable<NonNullable<ContainerStatus['state']>['terminated']>;

function endOf({ reason, exitCode, message }: Terminated): Terminated {
  return {
    ...(reason === undefined ? {} : { reason }),
    exitCode,
    ...(message === undefined ? {} : { message: message.slice(0, MESSAGE_LIMIT) }),
  };
}

function shorten<T extends { readonly message?: string }>(state: T): T {
  return state.message === undefined ? state : { ...state, message: state.message.slice(0, MESSAGE_LIMIT) };
}

function withoutLastApplied<T extends DeliveryJob['metadata']>(metadata: T): T {
  if (metadata.annotations?.[LAST_APPLIED] === undefined) return metadata;
  const { [LAST_APPLIED]: _, ...annotations } = metadata.annotations;
  return { ...metadata, annotations };
}

function identityOf({ name, namespace, uid, resourceVersion, deletionTimestamp, ownerReferences }: Pod['metadata']) {
  const controller = ownerReferences?.filter((owner) => owner.controller === true) ?? [];
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    ...(controller.length === 0 ? {} : { ownerReferences: controller }),
  };
}

function pick(from: Readonly<Record<string, string>> | undefined, names: readonly string[]): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const name of names) {
    const value = from?.[name];
    if (value !== undefined) kept[name] = value;
  }
  return kept;
}
