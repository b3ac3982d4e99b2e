import { annotations, deliveryJobKind, finalizers } from '@rollcall/crds/kinds.ts';
import type { CanaryStep, DeliveryPolicySpec, DeliveryStrategy } from '@rollcall/crds/types.gen.ts';
import {
  type Deployment,
  deploymentKind,
  type PodTemplate,
  type Service,
  serviceKind,
} from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Change, Decision } from '../../runtime/decision.ts';
import { buildContext, clusterOf, readyIn } from '../job/context.ts';
import { explained, findTrouble } from '../job/details.ts';
import { NOT_ACCEPTED } from '../job/failures.ts';
import { saveState } from '../job/saved-state.ts';
import type { ClusterView, Departure, JobSnapshot, SavedState, SettledPolicy } from '../job/snapshot.ts';
import { enterStage, type Fields } from '../job/stages.ts';
import { buildStatus, endStatus, writeStatus } from '../job/status.ts';
import { canaryReplicas } from '../strategies/canary-replicas.ts';
import type { StageName } from '../strategies/strategy.ts';
import { backendsOf } from '../traffic/http-route.ts';
import { isServed, withoutPin } from '../traffic/selector.ts';
import { targetTemplate } from '../workload/artifact.ts';
import { claimWorkload } from '../workload/changes.ts';
import { claimInTheWay, claimState } from '../workload/claim.ts';
import { isAsDesired, isSameJson, templateFingerprint } from '../workload/fingerprint.ts';
import { REVISION_ANNOTATION } from '../workload/names.ts';
import { DEFAULT_DEADLINE_SECONDS, podsOf } from '../workload/rollout.ts';
import { runningArtifact, runningVersion } from '../workload/version.ts';
import { supersededMessage } from './messages.ts';
import { preflightFault, routedServices, strategyOf } from './preflight.ts';
import { findStability, type Stability } from './stability.ts';

/** From the queue: finds the Deployment, and begins or fails. */
export function begin(snapshot: JobSnapshot): Decision {
  const { job, policy, now } = snapshot;
  const cluster = clusterOf(snapshot);
  const fault = preflightFault(snapshot);
  if (fault !== undefined || cluster === undefined) return failBefore(snapshot, fault ?? gone);
  const { name, namespace = '', uid = '', annotations: notes } = cluster.deployment.metadata;
  const oldVersion = runningVersion(cluster.deployment, job.spec);
  const oldArtifact = runningArtifact(cluster.deployment, job.spec);
  const revision = Number(notes?.[REVISION_ANNOTATION]);
  const status = buildStatus(job, now, {
    phase: 'Progressing',
    stage: 'Preparing',
    message: `Prepares to bring ${job.spec.version} to Deployment ${namespace}/${name}`,
    fields: {
      startedAt: now.toISOString(),
      workload: { namespace, name, uid },
      strategy: strategyOf(job, policy),
      weight: 0,
      ...(oldVersion === undefined ? {} : { oldVersion }),
      ...(oldArtifact === undefined ? {} : { oldArtifact }),
      ...(Number.isSafeInteger(revision) ? { previousRevision: revision } : {}),
    },
  });
  return { changes: writeStatus(job, status), requeueAfterMs: 0 };
}

const gone = { reason: 'WorkloadDeleted', message: 'The Deployment was deleted before anything was changed' };

const withoutFault: ReadonlySet<string> = new Set(['Cancelled', 'Superseded', 'NotNewer']);

/** Nothing was changed yet, so nothing has to be undone. */
function failBefore(snapshot: JobSnapshot, failure: { readonly reason: string; readonly message: string }): Decision {
  const { job, now } = snapshot;
  // Nothing is wrong with what nobody wants to have any more.
  const phase = withoutFault.has(failure.reason) ? 'RolledBack' : 'Failed';
  return { changes: writeStatus(job, endStatus(job, now, { phase, ...failure, failure })) };
}

/** So often a job checks whether another is still behind a claim. */
const CLAIM_RECHECK_MS = 5000;

/**
 * What is first: the finalizer, the claim, the record of all that is to be handed back. Then the
 * strategy begins.
 */
export function planPreparing(snapshot: JobSnapshot): Decision {
  const { job, saved } = snapshot;
  if (job.spec.abort || job.metadata.deletionTimestamp !== undefined) {
    return failBefore(snapshot, { reason: 'Cancelled', message: 'Cancelled before anything was changed' });
  }
  const { supersededBy } = snapshot.queue;
  if (supersededBy !== undefined) {
    return failBefore(snapshot, { reason: 'Superseded', message: supersededMessage(supersededBy) });
  }
  const cluster = clusterOf(snapshot);
  const fault = preflightFault(snapshot);
  if (fault !== undefined || cluster === undefined) return failBefore(snapshot, fault ?? gone);
  const guarded = job.metadata.finalizers ?? [];
  if (!guarded.includes(finalizers.delivery)) {
    return untilDeadline(snapshot, [patchFinalizers(snapshot, [...guarded, finalizers.delivery])]);
  }
  if (claimState(cluster, job) !== 'own') return claim(snapshot, cluster);
  if (saved !== undefined) return beginStrategy(snapshot, cluster, saved);
  const way = findWay(snapshot, cluster);
  const leftovers = way.strategy === 'Rolling' ? [] : cluster.leftovers.map(deletion);
  if (leftovers.length > 0) return untilDeadline(snapshot, leftovers);
  if (way.stability?.state === 'progressing') return waitForCalm(snapshot, cluster, way.stability);
  return untilDeadline(snapshot, [saveState(job, stateToSave(snapshot, cluster, way))]);
}

/** Nothing is recorded before: what another job has set for itself is not how things were. */
function claim(snapshot: JobSnapshot, cluster: ClusterView): Decision {
  const { job } = snapshot;
  const { deployment } = cluster;
  const other = claimInTheWay(cluster, job);
  if (other === undefined) return untilDeadline(snapshot, claimWorkload(deployment, job));
  // Nobody here knows whether another installation still runs.
  const hint =
    other.namespace === job.metadata.namespace
      ? ''
      : ` (if nothing runs that job, remove the annotation ${annotations.delivering})`;
  const waits = `job ${other.namespace}/${other.name} delivers to Deployment ${deployment.metadata.name}${hint}`;
  const message = `Waits: ${waits}`;
  return waitFor(snapshot, { reason: 'WorkloadClaimed', waits, message, recheckMs: CLAIM_RECHECK_MS });
}

/** What the API server refuses for ever must not keep the queue waiting. */
function untilDeadline(snapshot: JobSnapshot, changes: readonly Change[]): Decision {
  const { job, policy, now, refusal } = snapshot;
  if (refusal?.isInvalid === true) return failBefore(snapshot, { reason: 'ChangeRejected', message: refusal.message });
  const isLate = now.getTime() >= preparedByMs(snapshot);
  if (!isLate && refusal === undefined) return { changes, requeueAfterMs: 0 };
  if (!isLate) {
    const update = { phase: 'Progressing', stage: 'Preparing', message: `Prepares (${refusal?.message})` } as const;
    return { changes: [...writeStatus(job, buildStatus(job, now, update)), ...changes], requeueAfterMs: 0 };
  }
  const seconds = policy.rolling.progressDeadlineSeconds;
  const why = refusal === undefined ? '' : ` (${refusal.message})`;
  const message = `After ${seconds} s, ${NOT_ACCEPTED}: the job could not be prepared${why}`;
  return failBefore(snapshot, { reason: 'ProgressDeadlineExceeded', message });
}

function startedMs({ job, now }: JobSnapshot): number {
  return Date.parse(job.status?.stageStartedAt ?? now.toISOString());
}

function preparedByMs(snapshot: JobSnapshot): number {
  return startedMs(snapshot) + snapshot.policy.rolling.progressDeadlineSeconds * 1000;
}

/** Of what an ended job has left, where this one is to make its own. */
function deletion(object: Deployment | Service): Change {
  return { action: 'delete', kind: object.kind === 'Service' ? serviceKind : deploymentKind, object };
}

export function patchFinalizers({ job }: JobSnapshot, wanted: readonly string[]): Change {
  return { action: 'patch', kind: deliveryJobKind, object: job, patch: { metadata: { finalizers: wanted } } };
}

/** How a job is to go about it. */
interface Way {
  readonly target: PodTemplate;
  readonly strategy: DeliveryStrategy;
  readonly departure?: Departure | undefined;
  /** Undefined where nothing has to carry the traffic meanwhile. */
  readonly stability?: Stability;
}

/**
 * Blue-green and canary where there is traffic to move, and something that carries it meanwhile;
 * else a rolling update.
 */
function findWay(snapshot: JobSnapshot, cluster: ClusterView): Way {
  const { job, policy, artifact, now } = snapshot;
  const { spec, metadata } = cluster.deployment;
  const target = targetTemplate(job, cluster.deployment, artifact).template ?? spec.template;
  const strategy = strategyOf(job, policy);
  if (strategy === 'Rolling') return { target, strategy };
  const rolling = (reason: Departure['reason'], why: string): Way => ({
    target,
    strategy: 'Rolling',
    departure: { reason, message: `Rolling instead of ${strategy}, as ${why}` },
  });
  if ((spec.replicas ?? 1) === 0) return rolling('NothingToMove', `Deployment ${metadata.name} asks for no pods`);
  if (isAsDesired(target, spec.template)) {
    return rolling('NothingToMove', `Deployment ${metadata.name} has no other template to get`);
  }
  const deadlineMs = policy.rolling.progressDeadlineSeconds * 1000;
  const waitedMs = now.getTime() - startedMs(snapshot);
  const stability = findStability(cluster, waitedMs, waitedMs >= deadlineMs);
  if (stability.state === 'unavailable') return rolling('WorkloadNotReady', stability.why);
  return {
    target,
    strategy,
    stability,
    departure: strategy === 'Canary' ? canaryDeparture(policy, cluster) : undefined,
  };
}

function canaryDeparture(policy: DeliveryPolicySpec, cluster: ClusterView): Departure | undefined {
  const router = isServed(cluster) ? replicasInsteadOfRoutes(policy, cluster) : undefined;
  const isRouted = policy.canary.trafficRouter === 'GatewayAPI' && routesToSave(cluster).length > 0;
  const size = weightsOutOfReach(policy, cluster, isRouted);
  if (router === undefined || size === undefined) return router ?? size;
  return { ...router, message: `${router.message}. ${size.message}` };
}

/** Which steps need more pods than `maxSurge` allows. */
function weightsOutOfReach(
  { canary }: DeliveryPolicySpec,
  { deployment }: ClusterView,
  isRouted: boolean,
): Departure | undefined {
  const { replicas = 1 } = deployment.spec;
  if (canary.maxSurge === undefined) return undefined;
  const most = podsOf(canary.maxSurge, replicas, Math.ceil);
  const reached = Math.floor((100 * most) / (isRouted ? replicas : replicas + most));
  const isOut = ({ weight }: CanaryStep) => canaryReplicas(replicas, weight) > most && weight > reached;
  if (!canary.steps.some(isOut)) return undefined;
  const message = `At most ${most} pods beside the ${replicas} of Deployment ${deployment.metadata.name} (maxSurge) reach ${reached} %`;
  return { reason: 'SurgeLimited', message };
}

/** Without routes to put weights on, weights are made by replicas. */
function replicasInsteadOfRoutes({ canary }: DeliveryPolicySpec, cluster: ClusterView): Departure | undefined {
  if (canary.trafficRouter !== 'GatewayAPI' || routesToSave(cluster).length > 0) return undefined;
  const instead = 'Weights by replicas instead of GatewayAPI, as';
  return cluster.routes === undefined
    ? { reason: 'GatewayAPIMissing', message: `${instead} the API server knows no HTTPRoutes` }
    : {
        reason: 'NoMatchingRoute',
        message: `${instead} no HTTPRoute leads to a Service of Deployment ${cluster.deployment.metadata.name}`,
      };
}

interface Unrest {
  readonly why: string;
  /** After which it may be over. */
  readonly graceMs?: number;
}

function waitForCalm(snapshot: JobSnapshot, cluster: ClusterView, { why, graceMs = Infinity }: Unrest): Decision {
  const nowMs = snapshot.now.getTime();
  const waitedFor = { deployments: [cluster.deployment], groups: cluster.replicaSets.filter(({ current }) => current) };
  const trouble = findTrouble(waitedFor, startedMs(snapshot), nowMs);
  const recheckMs = Math.max(0, Math.min(graceMs, (trouble.recheckAtMs ?? Infinity) - nowMs));
  const message = `Waits for a stable Deployment: ${why}`;
  return waitFor(snapshot, { reason: 'WorkloadNotStable', waits: why, message, details: trouble.message, recheckMs });
}

interface Waiting {
  /** For which the job ends at the deadline. */
  readonly reason: string;
  readonly waits: string;
  readonly message: string;
  /** What is in the way of that. */
  readonly details?: string | undefined;
  /** When to observe again, at the latest. */
  readonly recheckMs: number;
}

function waitFor(snapshot: JobSnapshot, { reason, waits, message, details, recheckMs }: Waiting): Decision {
  const { job, policy, now } = snapshot;
  const seconds = policy.rolling.progressDeadlineSeconds;
  const endMs = preparedByMs(snapshot);
  if (now.getTime() >= endMs) {
    return failBefore(snapshot, { reason, message: explained(`${waits}, after ${seconds} s`, [details]) });
  }
  const update = { phase: 'Progressing', stage: 'Preparing', message: explained(message, [details]) } as const;
  return {
    changes: writeStatus(job, buildStatus(job, now, update)),
    requeueAfterMs: Math.min(endMs - now.getTime(), recheckMs),
  };
}

/** Checks may still see what is to be got rid of. */
function withoutChecks(policy: SettledPolicy): SettledPolicy {
  return { ...policy, analysis: [], requireHeartbeat: false };
}

function stateToSave({ job, policy }: JobSnapshot, cluster: ClusterView, way: Way): SavedState {
  const { spec, metadata } = cluster.deployment;
  const { target, strategy, departure } = way;
  const ready = readyIn(cluster.replicaSets);
  const isShort = ready < (spec.replicas ?? 1);
  // Pods that are only coming up will be ready by the time of a way back.
  const pods = cluster.replicaSets.flatMap((group) => group.pods);
  const missing = pods.filter((pod) => !pod.ready && pod.isComingUp !== true).length;
  const pins = strategy === 'Rolling' ? [] : cluster.services;
  return {
    deployment: {
      template: spec.template,
      strategy: spec.strategy ?? {},
      progressDeadlineSeconds: spec.progressDeadlineSeconds ?? DEFAULT_DEADLINE_SECONDS,
      version: metadata.annotations?.[annotations.version] ?? null,
      versionOf: metadata.annotations?.[annotations.versionOf] ?? null,
      short: isShort ? { ready, missing } : undefined,
    },
    services: pins.map((service) => ({ name: service.metadata.name, selector: withoutPin(service) })),
    routes: strategy === 'Canary' && policy.canary.trafficRouter === 'GatewayAPI' ? routesToSave(cluster) : [],
    target,
    strategy,
    policy: job.spec.immediate === true ? withoutChecks(policy) : policy,
    departure,
  };
}

function routesToSave(cluster: ClusterView): SavedState['routes'] {
  const names = new Set(routedServices(cluster));
  return (cluster.routes ?? [])
    .filter((route) => backendsOf(route, names).length > 0)
    .map(({ metadata, spec }) => ({ name: metadata.name, rules: spec.rules ?? [] }));
}

function beginStrategy(snapshot: JobSnapshot, cluster: ClusterView, saved: SavedState): Decision {
  const { job } = snapshot;
  if (!isSameJson(cluster.deployment.spec.template, saved.deployment.template)) {
    const message = `The pod template of Deployment ${cluster.deployment.metadata.name} was changed before the job had begun`;
    return failBefore(snapshot, { reason: 'ChangedFromOutside', message });
  }
  const stage = firstStage(saved);
  const stableHash = cluster.replicaSets.find(({ current }) => current)?.hash;
  if (stableHash === undefined && saved.strategy !== 'Rolling') {
    const why = `the pods of Deployment ${cluster.deployment.metadata.name} are not to be seen`;
    return waitForCalm(snapshot, cluster, { why });
  }
  const fields: Fields = {
    strategy: saved.strategy,
    templateFingerprint: templateFingerprint(saved.deployment.template),
    ...(stableHash === undefined ? {} : { stableHash }),
    ...(stage === 'Stepping' ? { step: 0 } : {}),
  };
  const context = buildContext(snapshot, saved, job.status ?? { phase: 'Progressing' });
  return enterStage(context, stage, fields);
}

function firstStage({ strategy, routes }: SavedState): StageName {
  if (strategy === 'Rolling') return 'Updating';
  if (strategy === 'BlueGreen') return 'Pinning';
  return routes.length > 0 ? 'Routing' : 'Stepping';
}
