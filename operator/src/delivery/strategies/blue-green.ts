import { hasChecks } from '../checks/verification.ts';
import type { JobContext } from '../job/context.ts';
import { steer } from '../traffic/selector.ts';
import { cutOver } from './shared-stages.ts';
import {
  isPromoted,
  type Next,
  promoted,
  type StageName,
  type StagePlan,
  type StagePlans,
  untilMs,
} from './strategy.ts';
import {
  during,
  keepUp,
  latePods,
  missedPods,
  planVerification,
  reach,
  steerToExtra,
  whileCarrying,
} from './upkeep.ts';

/** A full second set of pods beside the first, then all traffic at once. */
export const blueGreenStages = {
  Pinning: planPinning,
  BringingUp: planBringingUp,
  Testing: planTesting,
  Gate: planGate,
  Baking: planBaking,
} satisfies Partial<StagePlans<StageName>>;

/**
 * The new pods carry the labels that Services select by: they must not get traffic as they come up.
 */
function planPinning(context: JobContext): StagePlan {
  const steering = steer(context, 'stable', ['none']);
  const message = steering.waits ?? 'Pins the traffic to the pods that run';
  return reach(
    context,
    { ...steering, progress: {} },
    { reached: steering.done, next: { stage: 'BringingUp' }, message },
  );
}

function planBringingUp(context: JobContext): StagePlan {
  const upkeep = keepUp(context, context.replicas, [steer(context, 'stable')]);
  return reach(context, upkeep, {
    reached: upkeep.sized && upkeep.steered,
    next: hasChecks('Testing', context.policy) ? { stage: 'Testing' } : afterTesting(context),
    message: `Waits for ${context.replicas} pods of ${context.job.spec.version} to become ready`,
    podsReady: upkeep.sized,
  });
}

function planTesting(context: JobContext): StagePlan {
  const upkeep = keepUp(context, context.replicas, [steer(context, 'stable')]);
  return during(context, {
    upkeep,
    plan: planVerification(context, afterTesting(context)),
    missed: latePods(context, context.replicas),
    holds: true,
  });
}

function afterTesting({ policy }: JobContext): Next {
  return policy.blueGreen.autoPromote ? cutOver : { stage: 'Gate' };
}

function planGate(context: JobContext): StagePlan {
  const upkeep = keepUp(context, context.replicas, [steer(context, 'stable')]);
  const message = `${context.job.spec.version} is ready; waits for promote`;
  const next = { ...cutOver, progress: { ...cutOver.progress, ...promoted(context) } };
  const plan = { message, next: isPromoted(context) ? next : undefined };
  return during(context, { upkeep, plan, missed: latePods(context, context.replicas), holds: true });
}

function planBaking(context: JobContext): StagePlan {
  const { bakeSeconds } = context.policy.blueGreen;
  const upkeep = keepUp(context, context.replicas, [steerToExtra(context)]);
  // The old pods have had no traffic for as long as the new ones were baked.
  const isDrained = bakeSeconds >= context.policy.drainSeconds;
  const next: Next = { stage: isDrained ? 'UpdatingWorkload' : 'Draining' };
  const plan = planVerification(context, next, untilMs(context, bakeSeconds));
  return whileCarrying(context, { upkeep, plan, missed: missedPods(context, context.replicas) });
}
