import { annotations } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import { type Deployment, type DeploymentStrategy, deploymentKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { Change } from '../../runtime/decision.ts';
import { disown } from '../../runtime/field-manager.ts';
import { type JobContext, readyCount, readyIn } from '../job/context.ts';
import { isRollbackUnfinished } from '../job/failures.ts';
import { versionParts } from './artifact.ts';
import { claimOn, ownClaim, writeMark } from './claim.ts';
import { surgeLimit } from './extra-deployment.ts';
import { isSameJson } from './fingerprint.ts';
import { mergePatch } from './merge-patch.ts';
import { HASH_LABEL } from './names.ts';
import { complaintOf, deadlineSeconds, podsOf, progressedAtMs } from './rollout.ts';
import { versionAnnotations } from './version.ts';

/** How pods are replaced: as the policy says, or else the Deployment. */
function ownStrategy({ policy }: JobContext): DeploymentStrategy {
  return replacing(policy.rolling.maxSurge, policy.rolling.maxUnavailable);
}

/**
 * Where the pods that run are not worth keeping, or on the way back, all pods may come up at once;
 * ready ones stay. What cannot have more pods than it asks for, as each has a port of its node,
 * keeps to that.
 */
function fastStrategy(
  { policy }: JobContext,
  missing: number | string = policy.rolling.maxUnavailable,
): DeploymentStrategy {
  const { maxSurge } = policy.rolling;
  return replacing(hasSurge(policy) ? '100%' : maxSurge, missing);
}

/**
 * Pods that could not run before the job are not waited for: new ones would stay in their stead.
 * But better those than none, and never fewer ready ones than there were, however many are asked
 * for by now.
 */
function strategyBack(context: JobContext): DeploymentStrategy {
  const { saved, replicas, policy } = context;
  const { short, strategy } = saved.deployment;
  if (strategy.type === 'Recreate') return strategy;
  const limit = surgeLimit(context);
  if (limit !== undefined) return limitedBack(context, limit);
  const lost = short === undefined || short.ready === 0 ? 0 : Math.max(0, replicas - short.ready);
  const spare = Math.min(lost, short?.missing ?? 0);
  const own = podsOf(policy.rolling.maxUnavailable, replicas, Math.floor);
  // Without a surge the controller counts pods that do not become ready among those that may be
  // missing. Others that were only coming up when the job began are waited for first.
  const isStuck = context.nowMs >= stuckAtMs(context);
  const least = hasSurge(policy) ? spare : own + (isStuck ? lost : spare);
  const missing = Math.max(least, isStuck || lacksCapacity(context) ? missingOf(context) : 0);
  return fastStrategy(context, missing > own ? missing : undefined);
}

/**
 * When old pods that are not ready have kept the others from coming up for too long on the
 * way back, in milliseconds since 1970. Infinity where they do not.
 */
export function stuckAtMs({ cluster, policy, stageStartedMs, template, touched }: JobContext): number {
  if (cluster === undefined || template !== 'saved' || !touched || hasSurge(policy)) return Infinity;
  const sinceMs = Math.max(stageStartedMs, progressedAtMs(cluster.deployment));
  return sinceMs + policy.rolling.progressDeadlineSeconds * 500;
}

/** The way back of a canary with `maxSurge`: together with its pods, as far as they stay, there are never more. */
function limitedBack(context: JobContext, limit: number): DeploymentStrategy {
  const { around, replicas, policy } = context;
  const staying = around.extra?.deployment.metadata.deletionTimestamp === undefined ? around.extra : undefined;
  const asked = staying?.deployment.spec.replicas ?? 0;
  const surge = hasSurge(policy) ? Math.max(0, limit - asked) : 0;
  const missing = Math.max(
    replicas - readyIn(context.cluster?.replicaSets),
    Math.min(asked, readyCount(context.extra)),
  );
  return replacing(surge, Math.max(missing, surge === 0 ? 1 : 0));
}

/** How many pods of the Deployment nobody would miss. */
function missingOf(context: JobContext): number {
  const { replicas } = context;
  return isCarriedByExtra(context) ? replicas : Math.max(0, replicas - readyIn(context.cluster?.replicaSets));
}

function hasSurge({ rolling }: JobContext['policy']): boolean {
  return Number.parseInt(String(rolling.maxSurge), 10) !== 0;
}

function replacing(maxSurge: number | string, maxUnavailable: number | string): DeploymentStrategy {
  return { type: 'RollingUpdate', rollingUpdate: { maxSurge, maxUnavailable } };
}

/** Where others have all traffic, and there is no capacity for more pods beside them: those that go free it for those that come. */
const oldFirst = replacing(0, '100%');

/** Whether pods of the Deployment find no capacity, for a quota or for lack of nodes, or would without what the job has done about it. */
export function lacksCapacity({ cluster, current }: JobContext): boolean {
  if (current?.pods.some((pod) => pod.waits?.isUnscheduled === true) === true) return true;
  if (cluster === undefined) return false;
  return complaintOf(cluster.deployment) !== undefined || isSameJson(cluster.deployment.spec.strategy, oldFirst);
}

/** Whether the extra pods have all traffic, and are enough for it. */
function isCarriedByExtra({ extra, saved, around, replicas }: JobContext): boolean {
  if (extra === undefined || readyCount(extra) < replicas) return false;
  const names = new Set(saved.services.map(({ name }) => name));
  const services = around.services.filter(({ metadata }) => names.has(metadata.name));
  return services.every((service) => service.spec?.selector?.[HASH_LABEL] === extra.hash);
}

/** Claims a Deployment for a job, whoever may have claimed it before; see `claim.ts`. */
export function claimWorkload(deployment: Deployment, job: DeliveryJob): readonly Change[] {
  return patchDeployment(deployment, { annotations: { [annotations.delivering]: ownClaim(job) } });
}

/** Removes the claim of a job, of whichever pass, that has changed nothing else. */
export function unclaimWorkload(deployment: Deployment, job: DeliveryJob): readonly Change[] {
  if (claimOn(deployment)?.uid !== job.metadata.uid) return [];
  return patchDeployment(deployment, { annotations: { [annotations.delivering]: null } });
}

/** Gives the user's Deployment the new version; nothing when it has it. */
export function updateWorkload(context: JobContext): readonly Change[] {
  const { cluster, saved, policy, job, template, unchanged } = context;
  if (cluster === undefined) return [];
  const { deployment } = cluster;
  const version = versionAnnotations(deployment, unchanged ? deployment.spec.template : saved.target, job.spec);
  if (unchanged) return patchDeployment(deployment, { annotations: version });
  if (template === 'target') {
    // Readiness of the pods that stand in changes.
    if (surgeLimit(context) !== undefined) {
      return patchDeployment(deployment, { annotations: {}, spec: { strategy: rollingStrategy(context) } });
    }
    const isConstrained = lacksCapacity(context) && isCarriedByExtra(context);
    return isConstrained ? patchDeployment(deployment, { annotations: {}, spec: { strategy: oldFirst } }) : [];
  }
  const written = writeMark(job, (deployment.metadata.generation ?? 0) + 1);
  return patchDeployment(deployment, {
    annotations: { ...version, [annotations.delivering]: written },
    spec: {
      template: saved.target,
      strategy: rollingStrategy(context),
      progressDeadlineSeconds: deadlineSeconds(policy, deployment),
    },
  });
}

/** How the pods are replaced. Those of a Recreate Deployment may not run beside one another. */
function rollingStrategy(context: JobContext): DeploymentStrategy {
  const { saved, job } = context;
  if (saved.deployment.strategy.type === 'Recreate') return saved.deployment.strategy;
  // Canary pods stand in: as many of the Deployment's may be missing, and none come beside them.
  if (surgeLimit(context) !== undefined) return replacing(0, Math.max(1, readyCount(context.extra)));
  const isUrgent = job.spec.immediate === true || saved.departure?.reason === 'WorkloadNotReady';
  return isUrgent ? fastStrategy(context) : ownStrategy(context);
}

/**
 * Removes the new version from the user's Deployment, unless somebody else has put yet another
 * there. Even where there is nothing to remove the Deployment is written: what another operator,
 * that no longer leads, decided on before fails then.
 */
export function restoreWorkload(context: JobContext): readonly Change[] {
  const { cluster, saved, job, template, unchanged, claim } = context;
  if (cluster === undefined || claim === 'other') return [];
  const { deployment } = cluster;
  const isReverting = template === 'target' && !unchanged;
  // Pods of the new version that fail only then must not go one by one either.
  const isConstrained =
    template === 'saved' &&
    context.touched &&
    (lacksCapacity(context) || surgeLimit(context) !== undefined || context.nowMs >= stuckAtMs(context));
  return patchDeployment(deployment, {
    annotations: {
      ...(isReverting || runsOldVersion(context) ? versionBefore(context) : {}),
      [annotations.delivering]: ownClaim(job),
      [annotations.rollingBack]: job.metadata.uid ?? '',
    },
    spec: {
      ...(isReverting ? { template: saved.deployment.template } : {}),
      ...(isReverting || isConstrained ? { strategy: strategyBack(context) } : {}),
    },
  });
}

/**
 * Gives back what only the job wanted. What somebody else has set since stays.
 *
 * @param isLast whether the job has nothing else to give back: only then it lets go of the
 * Deployment.
 */
export function releaseWorkload(context: JobContext, isLast: boolean): readonly Change[] {
  const { cluster, saved, policy, claim } = context;
  if (cluster === undefined || claim === 'other') return [];
  const { deployment } = cluster;
  const { strategy, progressDeadlineSeconds } = deployment.spec;
  const { maxSurge, maxUnavailable } = strategy?.rollingUpdate ?? {};
  // How many may be missing depends on a number of pods that may have changed since.
  const missing = typeof maxUnavailable === 'number' ? maxUnavailable : undefined;
  const ours = [ownStrategy(context), fastStrategy(context), fastStrategy(context, missing), oldFirst];
  const isLimited =
    surgeLimit(context) !== undefined && typeof maxSurge === 'number' && typeof maxUnavailable === 'number';
  const before = saved.deployment;
  const given = patchDeployment(deployment, {
    annotations: {
      ...versionAtEnd(context),
      ...(isLast && claim === 'own' && !isLeft(context) ? { [annotations.delivering]: null } : {}),
      [annotations.rollingBack]: null,
    },
    spec: {
      ...(isLimited || ours.some((own) => isSameJson(own, strategy)) ? { strategy: before.strategy } : {}),
      ...(progressDeadlineSeconds === deadlineSeconds(policy, deployment)
        ? { progressDeadlineSeconds: before.progressDeadlineSeconds }
        : {}),
    },
  });
  if (given.length > 0) return given;
  const kept = context.failure === undefined ? ['metadata.annotations', 'spec.template'] : ['metadata.annotations'];
  return disown(deploymentKind, deployment, kept);
}

/**
 * Whether a rollback has ended without the old template, and the Deployment is still the job's: a
 * later job, or a user, may have meant the version that runs to stay.
 */
function isLeft({ claim, template, unchanged, failure }: JobContext): boolean {
  return isRollbackUnfinished(failure) && claim === 'own' && template === 'target' && !unchanged;
}

/**
 * Puts the template back that could not be put back in time. The old pods come up as the user's own
 * strategy says, so no Service may be pinned to the pods that they replace.
 */
export function restoreLate(context: JobContext): readonly Change[] {
  const { cluster, saved } = context;
  if (cluster === undefined || !isLeft(context)) return [];
  return patchDeployment(cluster.deployment, {
    annotations: versionBefore(context),
    spec: { template: saved.deployment.template },
  });
}

/**
 * Whether what makes the version is as it was, whatever else somebody has put into the template.
 */
function runsOldVersion({ cluster, saved, template }: JobContext): boolean {
  if (cluster === undefined || template === 'saved') return true;
  return isSameJson(versionParts(cluster.deployment.spec.template), versionParts(saved.deployment.template));
}

/** Whoever reviews for the API server may have made another image of what the job had asked for. */
function versionAtEnd(context: JobContext): Readonly<Record<string, string | null>> {
  const { cluster, failure, job, template, unchanged } = context;
  if (failure !== undefined) return runsOldVersion(context) ? versionBefore(context) : {};
  if (cluster === undefined || (template !== 'target' && !unchanged)) return {};
  const { deployment } = cluster;
  const { [annotations.version]: version, [annotations.versionOf]: record } = deployment.metadata.annotations ?? {};
  const isOurs = version === job.spec.version && record !== undefined;
  return isOurs ? versionAnnotations(deployment, deployment.spec.template, job.spec) : {};
}

function versionBefore({ cluster, saved, job }: JobContext): Record<string, string | null> {
  const isOurs = cluster?.deployment.metadata.annotations?.[annotations.version] === job.spec.version;
  const { version, versionOf } = saved.deployment;
  return isOurs ? { [annotations.version]: version, [annotations.versionOf]: versionOf } : {};
}

interface Wish {
  readonly annotations: Readonly<Record<string, string | null>>;
  readonly spec?: Partial<Deployment['spec']>;
}

function patchDeployment(deployment: Deployment, wish: Wish): readonly Change[] {
  const { metadata, spec } = deployment;
  const patch = mergePatch(
    { metadata: { annotations: metadata.annotations ?? {} }, spec },
    {
      metadata: { annotations: { ...metadata.annotations, ...wish.annotations } },
      spec: { ...spec, ...wish.spec },
    },
  );
  return patch === undefined ? [] : [{ action: 'patch', kind: deploymentKind, object: deployment, patch }];
}
