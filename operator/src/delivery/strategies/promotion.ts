import { annotations } from '@rollcall/crds/kinds.ts';
import type { DeliveryFailure, DeliveryJob } from '@rollcall/crds/types.gen.ts';
import { type Change, independently } from '../../runtime/decision.ts';
import { isExtraGone, removeExtra } from '../extra-deployment.ts';
import { failure, STILL_TRIED } from '../failures.ts';
import { releaseRoutes, steerRoutes } from '../traffic/http-route.ts';
import { releaseServices, steer } from '../traffic/selector.ts';
import { type JobView } from '../view.ts';
import { claimWorkload, releaseWorkload } from '../workload.ts';
import { canServeWithoutExtra } from './rollback.ts';
import { rollOut } from './rolling.ts';
import { isOver, type Stage, type StagePlan, untilMs, withoutNext } from './strategy.ts';
import { during, keepUp, missedPods, reach, type Upkeep } from './upkeep.ts';

/** From the moment that the extra pods take all traffic to the moment that the user's Deployment runs the new version alone. */
export const promotionStages = {
  CuttingOver: { phase: 'Progressing', plan: planCuttingOver },
  Draining: { phase: 'Promoting', plan: planDraining },
  UpdatingWorkload: { phase: 'Promoting', plan: planUpdatingWorkload },
  HandingBack: { phase: 'Promoting', plan: planHandingBack },
  DrainingExtra: { phase: 'Promoting', plan: planDrainingExtra },
  RemovingExtra: { phase: 'Promoting', plan: planRemovingExtra },
  Finishing: { phase: 'Promoting', plan: planFinishing },
} satisfies Record<string, Stage>;

function planCuttingOver(view: JobView): StagePlan {
  const isCanary = view.saved.strategy === 'Canary';
  const steering = steer(view, 'extra', ['stable', ...(isCanary ? (['none'] as const) : [])]);
  const upkeep = keepUp(view, view.replicas, [steering]);
  const plan = reach(view, upkeep, {
    reached: upkeep.steered,
    next: { stage: isCanary ? 'Draining' : 'Baking', progress: { weight: 100 } },
    message: upkeep.waits ?? `Brings all traffic to ${view.job.spec.version}`,
    podsReady: upkeep.sized,
  });
  return whileWaiting(upkeep, plan, missedPods(view, view.replicas));
}

/** Some Services may have their traffic on the extra pods while those that wait for pods keep it from going on. */
function whileWaiting(upkeep: Upkeep, plan: StagePlan, missed: ReturnType<typeof missedPods>): StagePlan {
  return upkeep.waits === undefined ? plan : during({ ...upkeep, changes: [], progress: {} }, plan, missed);
}

/** Requests that the old pods were given before the cut-over come to their end. */
function planDraining(view: JobView): StagePlan {
  const { drainSeconds } = view.policy;
  const upkeep = keepUp(view, view.replicas, [steer(view, 'extra')]);
  const message = `${view.job.spec.version} has all traffic; the old pods are kept for ${drainSeconds} s`;
  const isDone = isOver(view, drainSeconds) && upkeep.sized;
  const plan: StagePlan = isDone
    ? { message, next: { stage: 'UpdatingWorkload' } }
    : { message, ...(isOver(view, drainSeconds) ? {} : { lookAgainMs: untilMs(view, drainSeconds) }) };
  return during(upkeep, plan, missedPods(view, view.replicas));
}

/** Behind the pin: whatever happens to the pods of the user's Deployment now, none of them has traffic. */
function planUpdatingWorkload(view: JobView): StagePlan {
  const upkeep = keepUp(view, view.replicas, [steer(view, 'extra')]);
  const plan = rollOut(view, { stage: 'HandingBack' });
  return during(upkeep, upkeep.steered ? plan : withoutNext({ ...plan, changes: [] }), missedPods(view, view.replicas));
}

function planHandingBack(view: JobView): StagePlan {
  const steering = steer(view, 'current', ['extra']);
  // A Service in front of the wrong pods would get the canary's share back: first the Services, then the routes.
  const routes = steering.done ? [steerRoutes(view, undefined)] : [];
  const upkeep = keepUp(view, view.replicas, [steering, ...routes]);
  const plan = reach(view, upkeep, {
    reached: upkeep.steered,
    next: { stage: 'DrainingExtra' },
    message: upkeep.waits ?? `Hands the traffic back to Deployment ${view.status.workload?.name}`,
  });
  return whileWaiting(upkeep, plan, missedPods(view, view.replicas));
}

/** Forward and backward alike: pods that have lost their traffic are kept until their requests have come to an end. */
function planDrainingExtra(view: JobView): StagePlan {
  // Pods that no Service leads to end what they have taken by themselves.
  const drainSeconds = view.saved.services.length === 0 ? 0 : view.policy.drainSeconds;
  const message = `The extra pods are kept for ${drainSeconds} s without traffic`;
  return {
    message,
    ...(isOver(view, drainSeconds)
      ? { next: { stage: 'RemovingExtra' } }
      : { lookAgainMs: untilMs(view, drainSeconds) }),
  };
}

function planRemovingExtra(view: JobView): StagePlan {
  const message = 'Removes the extra pods';
  if (isExtraGone(view)) return { message, next: { stage: 'Finishing' } };
  const { progressDeadlineSeconds } = view.policy.rolling;
  const lookAgainMs = untilMs(view, progressDeadlineSeconds);
  if (view.failure === undefined || canServeWithoutExtra(view)) {
    // What is not gone by then is looked after when the job has ended; see `finished.ts`.
    return view.nowMs >= lookAgainMs
      ? { message, next: { stage: 'Finishing' } }
      : { message, changes: removeExtra(view), lookAgainMs };
  }
  // Better pods of the new version than none: they stay until the Deployment has enough of its own; see `finished.ts`.
  if (view.nowMs < lookAgainMs)
    return { message: 'Waits for pods that can take over from the extra ones', lookAgainMs };
  const incomplete = failure(
    'RollbackIncomplete',
    `${view.failure.message}; too few pods are ready to do without the extra ones`,
  );
  return { message, failure: incomplete, next: { stage: 'Finishing' } };
}

/** Everything that only the job wanted is as it was. What the API server refuses is tried again when the job has ended. */
function planFinishing(view: JobView): StagePlan {
  const changes = handBack(view);
  const message = 'Hands back what the job had changed';
  const lookAgainMs = untilMs(view, view.policy.rolling.progressDeadlineSeconds);
  if (changes.length === 0) {
    return { message, next: { stage: view.failure === undefined ? 'Succeeded' : 'Ended' } };
  }
  if (view.nowMs < lookAgainMs) return { message, changes, lookAgainMs };
  return { message, next: { stage: 'Ended', failure: notHandedBack(view) } };
}

function notHandedBack({ failure: known, job }: JobView): DeliveryFailure {
  return known === undefined
    ? failure(
        'NotHandedBack',
        `${job.spec.version} runs, but Services and Deployment are not as before: ${STILL_TRIED}`,
      )
    : failure('RollbackIncomplete', `${known.message}; ${STILL_TRIED}`);
}

/**
 * The changes after which nothing of the user's has anything that only the job wanted. The claim on the Deployment goes last: what
 * looks like the job's could be of the next one by then. Of a job that is undone because another has the Deployment, only what it has
 * marked is certain to be its own.
 */
export function handBack(view: JobView): readonly Change[] {
  const { claim, cluster, failure, job } = view;
  const around = [...releaseServices(view), ...releaseRoutes(view)];
  if (claim === 'other') return failure === undefined ? [] : independently(around.filter(isOfMarked(job)));
  if (around.length > 0 && claim === 'none' && cluster !== undefined) return claimWorkload(cluster.deployment, job);
  return independently([...around, ...releaseWorkload(view, around.length === 0)]);
}

/** Whether a change is made to what the rollback of this job has marked. */
function isOfMarked(job: DeliveryJob): (change: Change) => boolean {
  return (change) =>
    change.action === 'patch' && change.object.metadata.annotations?.[annotations.rollingBack] === job.metadata.uid;
}
