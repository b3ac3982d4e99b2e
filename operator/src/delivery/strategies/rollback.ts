import { type Change, independently } from '../../runtime/decision.ts';
import { emptyExtra, isExtraGone } from '../extra-deployment.ts';
import { failure, STILL_TRIED } from '../failures.ts';
import type { PodGroup } from '../snapshot.ts';
import { lagOf } from '../traffic/endpoints.ts';
import { steerRoutesBack } from '../traffic/http-route.ts';
import { isExtraInUse } from '../traffic/in-use.ts';
import { ownServices, pinOf, type SavedService, steerBack } from '../traffic/selector.ts';
import { type JobView, readyCount } from '../view.ts';
import { isObserved, restoreWorkload, rolloutOf } from '../workload.ts';
import { isOver, type Next, type Stage, type StagePlan, untilMs } from './strategy.ts';

/** So long pods of the old version that are not all ready, through no doing of the job, are waited for before they get the traffic. */
const GRACE_SECONDS = 5;

/** All traffic returns to the old version, and everything becomes what it was. The stages after these are those of promotion. */
export const rollbackStages = {
  Reverting: { phase: 'RollingBack', plan: planReverting },
  Restoring: { phase: 'RollingBack', plan: planRestoring },
} satisfies Record<string, Stage>;

function planReverting(view: JobView): StagePlan {
  const changes = goBack(view);
  const { progressDeadlineSeconds } = view.policy.rolling;
  const message = view.failure?.message ?? '';
  const endMs = untilMs(view, progressDeadlineSeconds);
  // What the API server refuses keeps nobody for ever: it is tried again throughout the next stage.
  if (changes.length > 0 && view.nowMs < endMs) return { message, changes, lookAgainMs: endMs };
  const isBack = changes.length === 0 && isHome(view);
  const lag = isBack ? lagOf(view, ownServices(view).map(nameOf), homeOf(view)) : undefined;
  if (isBack && lag === undefined) return { message, next: { stage: 'Restoring', progress: { weight: 0 } } };
  if (view.nowMs >= endMs) return { message, next: { stage: 'Restoring' } };
  if (lag !== undefined) return { message, lookAgainMs: Math.min(lag.lookAgainMs, endMs) };
  const seconds = isOver(view, GRACE_SECONDS) ? progressDeadlineSeconds : GRACE_SECONDS;
  return { message, lookAgainMs: untilMs(view, seconds) };
}

function planRestoring(view: JobView): StagePlan {
  const changes = goBack(view);
  const { progressDeadlineSeconds } = view.policy.rolling;
  const message = view.failure?.message ?? '';
  if (changes.length === 0 && isRestored(view)) return { message, next: afterRestoring(view) };
  if (!isOver(view, progressDeadlineSeconds)) {
    return { message, changes, lookAgainMs: untilMs(view, progressDeadlineSeconds) };
  }
  const why = changes.length > 0 ? STILL_TRIED : 'the pods of the old version do not become ready';
  return { message, failure: failure('RollbackIncomplete', `${message}; ${why}`), next: afterRestoring(view) };
}

/** Whatever the API server refuses of it, the rest is done. */
function goBack(view: JobView): readonly Change[] {
  const steering = [...steerBack(view, destination(view)), ...steerRoutesBack(view)];
  return [
    ...independently([...emptyExtra(view), ...steering.filter((change) => !isOnNewPods(view, change))]),
    // Only once these Services have let go of them may the pods of the new version go from the user's Deployment.
    ...steering.filter((change) => isOnNewPods(view, change)),
    ...restoreWorkload(view),
  ];
}

/** Whether it takes a Service off the pods that restoring the Deployment takes away. */
function isOnNewPods({ template, current, around }: JobView, change: Change): boolean {
  if (template !== 'target' || current === undefined || change.action !== 'patch') return false;
  return around.services.some((service) => service === change.object && pinOf(service) === current.hash);
}

/** Pods that never had traffic need not be drained. */
function afterRestoring(view: JobView): Next {
  if (isExtraGone(view)) return { stage: 'Finishing' };
  return { stage: view.status.extraReplicas === 0 ? 'RemovingExtra' : 'DrainingExtra' };
}

function isRestored(view: JobView): boolean {
  const { cluster, template, saved, current } = view;
  if (cluster === undefined) return true;
  if (saved.deployment.short !== undefined && isAsFound(view, saved.deployment.short.ready)) return true;
  // A rolling update made nothing that somebody else's pods would have to take over from.
  if (template === 'foreign' && saved.strategy === 'Rolling') return true;
  const isEnough = saved.strategy === 'Rolling' || readyCount(current) >= view.replicas;
  return isEnough && rolloutOf(cluster.deployment) === 'complete';
}

/** Whether a Deployment that was short of ready pods when the job began has as many again, and no pods of the job's. */
function isAsFound({ cluster, template, current, touched, replicas }: JobView, found: number): boolean {
  if (cluster === undefined || template !== 'saved' || !isObserved(cluster.deployment)) return false;
  const others = cluster.replicaSets.filter((group) => group !== current);
  if (touched && others.some(({ pods }) => pods.length > 0)) return false;
  return cluster.replicaSets.reduce((sum, group) => sum + readyCount(group), 0) >= Math.min(found, replicas);
}

/** The pods that traffic returns to: the old ones, or those of a template that somebody else has put there since. */
function homeOf({ template, current, stable }: JobView): PodGroup | undefined {
  return template === 'target' ? stable : (current ?? stable);
}

function isHome(view: JobView): boolean {
  if (view.cluster === undefined) return true;
  return ownServices(view).length === 0 || isPinnedTo(view, homeOf(view));
}

function nameOf({ service }: SavedService): string {
  return service.metadata.name;
}

function isPinnedTo(view: JobView, group: PodGroup | undefined): boolean {
  const services = ownServices(view);
  return group !== undefined && services.length > 0 && services.every(({ service }) => pinOf(service) === group.hash);
}

/**
 * The hash that Services are to be pinned to, '' being none. Home as soon as enough pods are ready there, and none of them is
 * about to go; before, what serves: the extra pods where they have the traffic, else whatever is ready.
 */
function destination(view: JobView): string {
  const { cluster, replicas, extra } = view;
  const home = homeOf(view);
  if (cluster === undefined) return '';
  if (home !== undefined && (isPinnedTo(view, home) || isWhole(view, home) || isAllThereIs(view, home))) {
    return home.hash;
  }
  const { short } = view.saved.deployment;
  if (home !== undefined && short !== undefined && readyCount(home) > 0 && isAsFound(view, short.ready))
    return home.hash;
  if (extra !== undefined && isPinnedTo(view, extra) && readyCount(extra) >= replicas) return extra.hash;
  return '';
}

/**
 * Whether the Deployment has these pods, enough of them, and no others. Their number alone would be misleading while another
 * template is there: its controller may be taking them away.
 */
function isWhole({ cluster, template, replicas }: JobView, home: PodGroup): boolean {
  const isSettled = cluster !== undefined && template !== 'target' && rolloutOf(cluster.deployment) === 'complete';
  return isSettled && readyCount(home) >= replicas;
}

/** Whether the Deployment is as the job found it: that some of its pods are not ready is nothing that waiting mends. */
function isAllThereIs(view: JobView, home: PodGroup): boolean {
  const others = view.cluster?.replicaSets.filter(({ hash, pods }) => hash !== home.hash && pods.length > 0) ?? [];
  return (
    view.template === 'saved' &&
    !view.touched &&
    others.length === 0 &&
    readyCount(home) > 0 &&
    isOver(view, GRACE_SECONDS)
  );
}

/** Whether nobody would miss the extra pods. */
export function canServeWithoutExtra(view: JobView): boolean {
  const { cluster, status, saved, extra, replicas } = view;
  if (cluster === undefined || status.extraReplicas === 0 || readyCount(extra) === 0) return true;
  if (isExtraInUse(view.around)) return false;
  const own = cluster.replicaSets.reduce((sum, group) => sum + readyCount(group), 0);
  return own >= Math.min(replicas, saved.deployment.short?.ready ?? replicas) || isPinnedTo(view, homeOf(view));
}
