import { annotations } from '@rollcall/crds/kinds.ts';
import type { DeliveryFailure, DeliveryJob } from '@rollcall/crds/types.gen.ts';
import { type Change, independently } from '../../runtime/decision.ts';
import { type JobContext } from '../job/context.ts';
import { failure, STILL_TRIED } from '../job/failures.ts';
import { lateRoute, releaseRoutes, steerRoutes } from '../traffic/http-route.ts';
import { isServed, releaseServices, steer } from '../traffic/selector.ts';
import { claimWorkload, releaseWorkload } from '../workload/changes.ts';
import { fullSize, isExtraGone, removeExtra, surgeLimit } from '../workload/extra-deployment.ts';
import { canServeWithoutExtra } from './rollback.ts';
import { rollOut } from './rolling.ts';
import { isOver, type Next, type StageName, type StagePlan, type StagePlans, untilMs } from './strategy.ts';
import { during, joinUpkeep, keepUp, missedPods, reach, steerToExtra, type Upkeep, whileCarrying } from './upkeep.ts';

/** So much longer than they are drained extra pods are kept for a gateway that may lead to them. */
const GATEWAYS_FOLLOW_SECONDS = 30;
/** HTTPRoutes are not watched. */
const RECHECK_MS = 1000;

/** From then on the new version may have traffic, if only of some Services. */
export const cutOver = { stage: 'CuttingOver', progress: { weight: 100 } } satisfies Next;

/**
 * The stages that blue-green and canary share, from the cut-over to the end. Rollbacks and rolling
 * updates end with the last three of them.
 */
export const sharedStages = {
  CuttingOver: planCuttingOver,
  Draining: planDraining,
  UpdatingWorkload: planUpdatingWorkload,
  HandingBack: planHandingBack,
  DrainingExtra: planDrainingExtra,
  RemovingExtra: planRemovingExtra,
  Finishing: planFinishing,
} satisfies Partial<StagePlans<StageName>>;

function planCuttingOver(context: JobContext): StagePlan {
  const isCanary = context.saved.strategy === 'Canary';
  const steering = steer(context, 'extra', ['stable', ...(isCanary ? (['none'] as const) : [])]);
  const upkeep = keepUp(context, context.replicas, [steering]);
  const plan = reach(context, upkeep, {
    reached: upkeep.steered,
    next: { stage: isCanary ? 'Draining' : 'Baking', progress: { weight: 100 } },
    message: upkeep.waits ?? `Brings all traffic to ${context.job.spec.version}`,
    podsReady: upkeep.sized,
  });
  return whileWaiting(upkeep, plan, missedPods(context, context.replicas));
}

/**
 * Some Services may have their traffic on the extra pods while Services that wait for pods keep it
 * from going on.
 */
function whileWaiting(upkeep: Upkeep, plan: StagePlan, missed: ReturnType<typeof missedPods>): StagePlan {
  return upkeep.waits === undefined ? plan : joinUpkeep({ ...upkeep, changes: [], progress: {} }, plan, missed);
}

/** Requests that the old pods were given before the cut-over come to their end. */
function planDraining(context: JobContext): StagePlan {
  const { drainSeconds } = context.policy;
  const upkeep = keepUp(context, context.replicas, [steerToExtra(context)]);
  const has = isServed(context.around) ? `${context.job.spec.version} has all traffic; the` : 'The';
  const message = `${has} old pods are kept for ${drainSeconds} s`;
  const plan = afterDraining(context, { drainSeconds, message, next: { stage: 'UpdatingWorkload' } });
  return whileCarrying(context, { upkeep, plan, missed: missedPods(context, context.replicas) });
}

/**
 * Behind the pin: whatever happens to the pods of the user's Deployment now, none of them has
 * traffic. Where `maxSurge` allows fewer extra pods, these stand in for as many of the
 * Deployment's.
 */
function planUpdatingWorkload(context: JobContext): StagePlan {
  const steering = surgeLimit(context) === undefined ? steerToExtra(context) : steer(context, 'none');
  const upkeep = keepUp(context, fullSize(context), [steering]);
  const plan = rollOut(context, { stage: 'HandingBack' });
  return during(context, {
    upkeep,
    plan: upkeep.steered ? plan : { ...plan, changes: [] },
    missed: missedPods(context, fullSize(context)),
    holds: upkeep.steered,
  });
}

function planHandingBack(context: JobContext): StagePlan {
  const steering = steer(context, 'current', ['extra', 'none']);
  // A Service in front of the wrong pods would get the canary's share back: first the Services,
  // then the routes.
  const routes = steering.done ? [steerRoutes(context, undefined)] : [];
  const upkeep = keepUp(context, fullSize(context), [steering, ...routes]);
  const plan = reach(context, upkeep, {
    reached: upkeep.steered,
    next: { stage: 'DrainingExtra' },
    message: upkeep.waits ?? `Hands the traffic back to Deployment ${context.status.workload?.name}`,
  });
  return whileWaiting(upkeep, plan, missedPods(context, fullSize(context)));
}

/**
 * Forward and backward alike: pods that have lost their traffic are kept until their requests have
 * come to an end.
 */
function planDrainingExtra(context: JobContext): StagePlan {
  // Pods that no Service leads to finish their requests by themselves.
  const drainSeconds = context.saved.services.length === 0 ? 0 : context.policy.drainSeconds;
  const message = `The extra pods are kept for ${drainSeconds} s without traffic`;
  const late = isOver(context, drainSeconds + GATEWAYS_FOLLOW_SECONDS) ? undefined : lateRoute(context);
  if (late !== undefined && isOver(context, drainSeconds)) {
    const waits = `${message}, and until the gateways of HTTPRoute ${late.metadata.name} know`;
    return { message: waits, requeueAtMs: context.nowMs + RECHECK_MS };
  }
  return afterDraining(context, { drainSeconds, message, next: { stage: 'RemovingExtra' } });
}

function afterDraining(
  context: JobContext,
  { drainSeconds, message, next }: { readonly drainSeconds: number; readonly message: string; readonly next: Next },
): StagePlan {
  return isOver(context, drainSeconds) ? { message, next } : { message, requeueAtMs: untilMs(context, drainSeconds) };
}

function planRemovingExtra(context: JobContext): StagePlan {
  const message = 'Removes the extra pods';
  if (isExtraGone(context)) return { message, next: { stage: 'Finishing' } };
  const { progressDeadlineSeconds } = context.policy.rolling;
  const requeueAtMs = untilMs(context, progressDeadlineSeconds);
  if (context.failure === undefined || canServeWithoutExtra(context)) {
    // What is not gone by then is handled when the job has ended; see `cleanup.ts`.
    return context.nowMs >= requeueAtMs
      ? { message, next: { stage: 'Finishing' } }
      : { message, changes: removeExtra(context), requeueAtMs };
  }
  // Better pods of the new version than none: they stay until the Deployment has enough of its own;
  // see `finished.ts`.
  if (context.nowMs < requeueAtMs) return { message: 'Waits for pods that can replace the extra ones', requeueAtMs };
  const incomplete = failure(
    'RollbackIncomplete',
    `${context.failure.message}; too few pods are ready to do without the extra ones`,
  );
  return { message, failure: incomplete, next: { stage: 'Finishing' } };
}

/**
 * Everything that only the job wanted is as it was. What the API server refuses is tried again when
 * the job has ended.
 */
function planFinishing(context: JobContext): StagePlan {
  const changes = handBack(context);
  const message = 'Hands back what the job had changed';
  const requeueAtMs = untilMs(context, context.policy.rolling.progressDeadlineSeconds);
  const atEnd: Next = { stage: context.failure === undefined ? 'Succeeded' : 'Ended' };
  if (changes.length === 0) return { message, next: atEnd };
  if (context.nowMs < requeueAtMs) return { message, changes, requeueAtMs };
  if (changes.every(({ action }) => action === 'disown')) return { message, next: atEnd };
  return { message, next: { stage: 'Ended', failure: notHandedBack(context) } };
}

function notHandedBack({ failure: known, job }: JobContext): DeliveryFailure {
  return known === undefined
    ? failure(
        'NotHandedBack',
        `${job.spec.version} runs, but Services and Deployment are not as before: ${STILL_TRIED}`,
      )
    : failure('RollbackIncomplete', `${known.message}; ${STILL_TRIED}`);
}

/**
 * The changes after which nothing of the user's has anything that only the job wanted. The claim on
 * the Deployment goes last: what resembles the job's could be of the next one by then. Of a job
 * that is undone because another has the Deployment, only what it has marked is certain to be its
 * own.
 */
export function handBack(context: JobContext): readonly Change[] {
  const { claim, cluster, failure, job } = context;
  const around = [...releaseServices(context), ...releaseRoutes(context)];
  if (claim === 'other') return failure === undefined ? [] : independently(around.filter(isOfMarked(job)));
  if (around.length > 0 && claim === 'none' && cluster !== undefined) return claimWorkload(cluster.deployment, job);
  return independently([...around, ...releaseWorkload(context, around.length === 0)]);
}

/** Whether a change is made to what the rollback of this job has marked. */
function isOfMarked(job: DeliveryJob): (change: Change) => boolean {
  return (change) =>
    change.action === 'patch' && change.object.metadata.annotations?.[annotations.rollingBack] === job.metadata.uid;
}
