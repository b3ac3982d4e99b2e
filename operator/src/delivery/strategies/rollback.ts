import { type Change, independently } from '../../runtime/decision.ts';
import { type JobContext, readyCount, readyIn } from '../job/context.ts';
import { failure, STILL_TRIED } from '../job/failures.ts';
import type { PodGroup } from '../job/snapshot.ts';
import { lagOf } from '../traffic/endpoints.ts';
import { steerRoutesBack } from '../traffic/http-route.ts';
import { isExtraInUse } from '../traffic/in-use.ts';
import { ownServices, pinOf, type SavedService, steerBack } from '../traffic/selector.ts';
import { lacksCapacity, restoreWorkload, stuckAtMs } from '../workload/changes.ts';
import { dropPods, emptyExtra, isExtraGone } from '../workload/extra-deployment.ts';
import { isObserved, progressedAtMs, rolloutOf } from '../workload/rollout.ts';
import { isOver, type Next, type StageName, type StagePlan, type StagePlans, untilMs } from './strategy.ts';

/**
 * So long pods of the old version that are not all ready, through no doing of the job, are waited
 * for before they get the traffic.
 */
const GRACE_SECONDS = 5;

/**
 * All traffic returns to the old version, and everything becomes what it was. The stages after
 * these are those of promotion.
 */
export const rollbackStages = {
  Reverting: planReverting,
  Restoring: planRestoring,
} satisfies Partial<StagePlans<StageName>>;

function planReverting(context: JobContext): StagePlan {
  const changes = goBack(context);
  const { progressDeadlineSeconds } = context.policy.rolling;
  const message = context.failure?.message ?? '';
  const endMs = untilMs(context, progressDeadlineSeconds);
  // What the API server refuses keeps nobody for ever: it is tried again throughout the next stage.
  if (changes.length > 0 && context.nowMs < endMs) return { message, changes, requeueAtMs: endMs };
  const isBack = changes.length === 0 && isHome(context);
  const lag = isBack ? lagOf(context, ownServices(context).map(nameOf), homeOf(context)) : undefined;
  if (isBack && lag === undefined) return { message, next: { stage: 'Restoring', progress: { weight: 0 } } };
  if (context.nowMs >= endMs) return { message, next: { stage: 'Restoring' } };
  if (lag !== undefined) return { message, requeueAtMs: Math.min(lag.requeueAtMs, endMs) };
  const seconds = isOver(context, GRACE_SECONDS) ? progressDeadlineSeconds : GRACE_SECONDS;
  return { message, requeueAtMs: untilMs(context, seconds) };
}

function planRestoring(context: JobContext): StagePlan {
  const changes = goBack(context);
  const { progressDeadlineSeconds } = context.policy.rolling;
  const message = context.failure?.message ?? '';
  if (changes.length === 0 && isRestored(context)) return { message, next: afterRestoring(context) };
  // Pods that come back one by one may take longer together.
  const isOn = changes.length === 0 && context.cluster !== undefined;
  const onMs = isOn ? progressedAtMs(context.cluster.deployment) + progressDeadlineSeconds * 1000 : 0;
  const endMs = Math.max(untilMs(context, progressDeadlineSeconds), onMs);
  const stuckMs = stuckAtMs(context);
  const requeueAtMs = context.nowMs < stuckMs ? Math.min(stuckMs, endMs) : endMs;
  if (context.nowMs < endMs) return { message, changes, requeueAtMs };
  const why = changes.length > 0 ? STILL_TRIED : 'the pods of the old version do not become ready';
  return { message, failure: failure('RollbackIncomplete', `${message}; ${why}`), next: afterRestoring(context) };
}

/** Whatever the API server refuses of it, the rest is done. */
function goBack(context: JobContext): readonly Change[] {
  const steering = [...steerBack(context, destination(context)), ...steerRoutesBack(context)];
  return [
    ...independently([...emptyExtra(context), ...steering.filter((change) => !isOnNewPods(context, change))]),
    // Only once these Services have let go of them may the pods of the new version go from the
    // user's Deployment.
    ...steering.filter((change) => isOnNewPods(context, change)),
    ...restoreWorkload(context),
    ...freeCapacity(context),
  ];
}

/** Extra pods that serve nobody must not keep the old ones from coming up. */
function freeCapacity(context: JobContext): readonly Change[] {
  const isIdle = readyCount(context.extra) === 0 && !isExtraInUse(context.around);
  return isIdle && lacksCapacity(context) ? dropPods(context.around) : [];
}

/** Whether it moves a Service off the pods that restoring the Deployment removes. */
function isOnNewPods({ template, current, around }: JobContext, change: Change): boolean {
  if (template !== 'target' || current === undefined || change.action !== 'patch') return false;
  return around.services.some((service) => service === change.object && pinOf(service) === current.hash);
}

/** Pods that never had traffic need not be drained. */
function afterRestoring(context: JobContext): Next {
  if (isExtraGone(context)) return { stage: 'Finishing' };
  return { stage: context.status.extraReplicas === 0 ? 'RemovingExtra' : 'DrainingExtra' };
}

function isRestored(context: JobContext): boolean {
  const { cluster, template, saved, current } = context;
  if (cluster === undefined) return true;
  if (saved.deployment.short !== undefined && isAsFound(context, saved.deployment.short.ready)) return true;
  // A rolling update made no pods that others would have to replace.
  if (template === 'foreign' && saved.strategy === 'Rolling') return true;
  const isEnough = saved.strategy === 'Rolling' || readyCount(current) >= context.replicas;
  return isEnough && rolloutOf(cluster.deployment) === 'complete';
}

/**
 * Whether a Deployment that was short of ready pods when the job began has as many again, and no
 * pods of the job's.
 */
function isAsFound({ cluster, template, current, touched, replicas }: JobContext, found: number): boolean {
  if (cluster === undefined || template !== 'saved' || !isObserved(cluster.deployment)) return false;
  const others = cluster.replicaSets.filter((group) => group !== current);
  if (touched && others.some(({ pods }) => pods.length > 0)) return false;
  return readyIn(cluster.replicaSets) >= Math.min(found, replicas);
}

/**
 * The pods that traffic returns to: the old ones, or those of a template that somebody else has put
 * there since.
 */
function homeOf({ template, current, stable }: JobContext): PodGroup | undefined {
  return template === 'target' ? stable : (current ?? stable);
}

function isHome(context: JobContext): boolean {
  if (context.cluster === undefined) return true;
  return ownServices(context).length === 0 || isPinnedTo(context, homeOf(context));
}

function nameOf({ service }: SavedService): string {
  return service.metadata.name;
}

function isPinnedTo(context: JobContext, group: PodGroup | undefined): boolean {
  const services = ownServices(context);
  return group !== undefined && services.length > 0 && services.every(({ service }) => pinOf(service) === group.hash);
}

/**
 * The hash that Services are to be pinned to, '' being none. Home as soon as enough pods are ready
 * there, and none of them is about to go; before, what serves: the extra pods where they have the
 * traffic, else whatever is ready.
 */
function destination(context: JobContext): string {
  const { cluster, replicas, extra } = context;
  const home = homeOf(context);
  if (cluster === undefined) return '';
  if (home !== undefined && (isPinnedTo(context, home) || isWhole(context, home) || isAllThereIs(context, home))) {
    return home.hash;
  }
  const { short } = context.saved.deployment;
  if (home !== undefined && short !== undefined && readyCount(home) > 0 && isAsFound(context, short.ready))
    return home.hash;
  if (extra !== undefined && isPinnedTo(context, extra) && readyCount(extra) >= replicas) return extra.hash;
  return '';
}

/**
 * Whether the Deployment has these pods, enough of them, and no others. Their number alone would be
 * misleading while another template is there: its controller may be removing them.
 */
function isWhole({ cluster, template, replicas }: JobContext, home: PodGroup): boolean {
  const isSettled = cluster !== undefined && template !== 'target' && rolloutOf(cluster.deployment) === 'complete';
  return isSettled && readyCount(home) >= replicas;
}

/**
 * Whether the Deployment is as the job found it: that some of its pods are not ready is nothing
 * that waiting mends.
 */
function isAllThereIs(context: JobContext, home: PodGroup): boolean {
  const others = context.cluster?.replicaSets.filter(({ hash, pods }) => hash !== home.hash && pods.length > 0) ?? [];
  return (
    context.template === 'saved' &&
    !context.touched &&
    others.length === 0 &&
    readyCount(home) > 0 &&
    isOver(context, GRACE_SECONDS)
  );
}

/** Whether nobody would miss the extra pods. */
export function canServeWithoutExtra(context: JobContext): boolean {
  const { cluster, status, saved, extra, replicas } = context;
  if (cluster === undefined || status.extraReplicas === 0 || readyCount(extra) === 0) return true;
  if (isExtraInUse(context.around)) return false;
  const own = readyIn(cluster.replicaSets);
  return own >= Math.min(replicas, saved.deployment.short?.ready ?? replicas) || isPinnedTo(context, homeOf(context));
}
