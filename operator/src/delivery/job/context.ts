import type { DeliveryFailure, DeliveryJob, DeliveryJobStatus } from '@rollcall/crds/types.gen.ts';
import { type ClaimState, claimState, isMarked } from '../workload/claim.ts';
import { isAsDesired, templateFingerprint } from '../workload/fingerprint.ts';
import type { ClusterView, JobSnapshot, PodGroup, SavedState, SettledPolicy, Surroundings } from './snapshot.ts';

/** A job that has saved what it found, with its parts named once. Nothing here decides. */
export interface JobContext {
  readonly snapshot: JobSnapshot;
  readonly job: DeliveryJob;
  /**
   * As stored, or as it is being written: a new stage is planned with the status that it begins
   * with.
   */
  readonly status: DeliveryJobStatus;
  readonly saved: SavedState;
  readonly policy: SettledPolicy;
  readonly nowMs: number;
  readonly stageStartedMs: number;
  /** Set once the job is being undone. */
  readonly failure: DeliveryFailure | undefined;
  /** Undefined when the Deployment is gone. */
  readonly cluster: ClusterView | undefined;
  readonly around: Surroundings;
  readonly template: TemplateState;
  /** `none` also when the Deployment is gone. */
  readonly claim: ClaimState;
  /** Whether the job has put its pod template there, be it there or not any more. */
  readonly touched: boolean;
  /** Whether the new version is what ran before: then there is nothing to roll out. */
  readonly unchanged: boolean;
  /** How many pods the Deployment asks for. */
  readonly replicas: number;
  /** The pods that ran before the job. */
  readonly stable: PodGroup | undefined;
  /** Pods that the Deployment is rolling out, or has rolled out. */
  readonly current: PodGroup | undefined;
  readonly extra: PodGroup | undefined;
}

/**
 * Whose the Deployment's pod template is: as it was saved, the job's new one, or somebody else's. A
 * template that is as saved after the job had put its own there is somebody else's too, as long as
 * the job goes forward.
 */
type TemplateState = 'saved' | 'target' | 'foreign';

/** @param status in place of the stored one. */
export function buildContext(snapshot: JobSnapshot, saved: SavedState, status: DeliveryJobStatus): JobContext {
  const { job, now } = snapshot;
  const cluster = clusterOf(snapshot);
  const template = cluster === undefined ? 'foreign' : templateState({ job, cluster, saved, status });
  const unchanged = isAsDesired(saved.target, saved.deployment.template);
  return {
    snapshot,
    job,
    status,
    saved,
    policy: saved.policy,
    nowMs: now.getTime(),
    stageStartedMs: status.stageStartedAt === undefined ? now.getTime() : Date.parse(status.stageStartedAt),
    failure: status.failure,
    cluster,
    around: surroundingsOf(snapshot),
    template,
    claim: cluster === undefined ? 'none' : claimState(cluster, job),
    touched:
      template === 'target' || recordedFingerprint(saved, status) !== templateFingerprint(saved.deployment.template),
    unchanged,
    replicas: cluster?.deployment.spec.replicas ?? (cluster === undefined ? 0 : 1),
    stable: cluster?.replicaSets.find(({ hash }) => hash === status.stableHash),
    current: cluster?.replicaSets.find(({ current }) => current),
    extra: surroundingsOf(snapshot).extra?.pods,
  };
}

const nothing: Surroundings = {
  extra: undefined,
  services: [],
  extraServices: new Map(),
  routes: undefined,
  endpoints: undefined,
};

/** What the job may have changed or made, whether or not the Deployment is there. */
export function surroundingsOf({ workload }: JobSnapshot): Surroundings {
  if (workload.found === 'one') return workload.cluster;
  return workload.found === 'gone' ? workload.surroundings : nothing;
}

/** The one Deployment, unless it is being deleted. */
export function clusterOf({ workload }: JobSnapshot): ClusterView | undefined {
  if (workload.found !== 'one') return undefined;
  return workload.cluster.deployment.metadata.deletionTimestamp === undefined ? workload.cluster : undefined;
}

interface TemplateKnowledge extends Pick<JobContext, 'job' | 'saved' | 'status'> {
  readonly cluster: ClusterView;
}

function templateState({ job, cluster, saved, status }: TemplateKnowledge): TemplateState {
  const before = templateFingerprint(saved.deployment.template);
  const recorded = recordedFingerprint(saved, status);
  const { fingerprint, deployment } = cluster;
  if (fingerprint === before) return recorded === before || status.failure !== undefined ? 'saved' : 'foreign';
  if (fingerprint === recorded) return 'target';
  if (recorded !== before) return 'foreign';
  // Patched, but not recorded yet: the API server has put its defaults into what it was given, and
  // whoever reviews for it more.
  return isMarked(deployment, job) || isAsDesired(saved.target, deployment.spec.template) ? 'target' : 'foreign';
}

function recordedFingerprint(saved: SavedState, { templateFingerprint: recorded }: DeliveryJobStatus): string {
  return recorded ?? templateFingerprint(saved.deployment.template);
}

/** How many of its pods are ready. */
export function readyCount(group: PodGroup | undefined): number {
  return group?.pods.filter(({ ready }) => ready).length ?? 0;
}

/** How many pods of all of these are ready. */
export function readyIn(groups: readonly PodGroup[] = []): number {
  return groups.reduce((sum, group) => sum + readyCount(group), 0);
}
