import { labels } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import type { ContainerStatus, Deployment, Pod, ReplicaSet } from '@rollcall/platform/kube/builtin-kinds.ts';
import { pick, pickMetadata, withoutLastApplied } from '../../runtime/object-fields.ts';
import { isLetGo } from '../start/queue.ts';
import { templateFingerprint } from '../workload/fingerprint.ts';
import { HASH_LABEL, REVISION_ANNOTATION } from '../workload/names.ts';

/** What a container said at its end may be as long as its log. */
const MESSAGE_LIMIT = 512;

/**
 * A ReplicaSet with, instead of its pod template, a digest of it that can be compared with
 * that of its Deployment's.
 */
export interface DigestedReplicaSet extends ReplicaSet {
  readonly spec: ReplicaSet['spec'] & { readonly templateFingerprint?: string };
}

/** Of jobs that have ended, which pile up, only what queues, metrics and owners need. */
export function trimJob(job: DeliveryJob): DeliveryJob {
  const trimmed = { ...job, metadata: withoutLastApplied(job.metadata) };
  const { status } = job;
  if (status === undefined || !isLetGo(job)) return trimmed;
  return { ...trimmed, status: { phase: status.phase, ...pick(status, 'startedAt', 'finishedAt') } };
}

/** The pod template stays whole: it is saved, patched and given back. */
export function trimDeployment(deployment: Deployment): Deployment {
  return { ...deployment, metadata: withoutLastApplied(deployment.metadata) };
}

export function trimReplicaSet(replicaSet: DigestedReplicaSet): DigestedReplicaSet {
  const { apiVersion, kind, metadata, spec } = replicaSet;
  const { template } = spec;
  return {
    apiVersion,
    kind,
    metadata: {
      ...ownedMetadata(metadata, 'creationTimestamp'),
      labels: pick(metadata.labels, HASH_LABEL),
      annotations: pick(metadata.annotations, REVISION_ANNOTATION),
    },
    spec: {
      ...pick(spec, 'replicas'),
      ...(template === undefined ? {} : { templateFingerprint: fingerprintOf(template) }),
    },
    ...pick(replicaSet, 'status'),
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
    apiVersion,
    kind,
    metadata: { ...ownedMetadata(metadata), labels: pick(metadata.labels, HASH_LABEL, labels.job) },
  };
  if (status === undefined) return known;
  return {
    ...known,
    status: {
      ...pick(status, 'phase', 'podIP', 'startTime'),
      conditions: status.conditions?.filter(isReported).map(trimCondition) ?? [],
      containerStatuses: status.containerStatuses?.map(trimContainer) ?? [],
      initContainerStatuses: status.initContainerStatuses?.map(trimContainer) ?? [],
    },
  };
}

type PodCondition = NonNullable<NonNullable<Pod['status']>['conditions']>[number];

/** Whether it is ready, and what it waits for where it has no node yet. */
function isReported({ type, status }: PodCondition): boolean {
  return type === 'Ready' || (type === 'PodScheduled' && status !== 'True');
}

function trimCondition(condition: PodCondition): PodCondition {
  const { type, status } = condition;
  if (status === 'True') return { type, status };
  return { type, status, ...shorten(pick(condition, 'lastTransitionTime', 'reason', 'message')) };
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

function endOf(terminated: Terminated): Terminated {
  return { exitCode: terminated.exitCode, ...shorten(pick(terminated, 'reason', 'message')) };
}

function shorten<T extends { readonly message?: string }>(state: T): T {
  return state.message === undefined ? state : { ...state, message: state.message.slice(0, MESSAGE_LIMIT) };
}

function ownedMetadata(metadata: Pod['metadata'], ...fields: readonly (keyof Pod['metadata'])[]) {
  const owners = metadata.ownerReferences?.filter(({ controller }) => controller === true) ?? [];
  return { ...pickMetadata(metadata, ...fields), ...(owners.length === 0 ? {} : { ownerReferences: owners }) };
}
