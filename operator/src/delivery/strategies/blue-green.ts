import { hasChecks } from '../analysis.ts';
import { steer } from '../traffic/selector.ts';
import type { JobView } from '../view.ts';
import { isPromoted, type Next, promoted, type Stage, type StagePlan, untilMs, withoutNext } from './strategy.ts';
import { during, keepUp, latePods, missedPods, planVerification, reach } from './upkeep.ts';

/** From then on the new version may have traffic, if only of some Services. */
export const cutOver = { stage: 'CuttingOver', progress: { weight: 100 } } satisfies Next;

/** A full second set of pods beside the first, then all traffic at once. */
export const blueGreenStages = {
  Pinning: { phase: 'Progressing', plan: planPinning },
  BringingUp: { phase: 'Progressing', plan: planBringingUp },
  Testing: { phase: 'Verifying', plan: planTesting },
  Gate: { phase: 'Paused', plan: planGate },
  Baking: { phase: 'Verifying', plan: planBaking },
} satisfies Record<string, Stage>;

/** The new pods carry the labels that Services select by: they must not get traffic as they come up. */
function planPinning(view: JobView): StagePlan {
  const steering = steer(view, 'stable', ['none']);
  const message = steering.waits ?? 'Pins the traffic to the pods that run';
  return reach(view, { ...steering, progress: {} }, { reached: steering.done, next: { stage: 'BringingUp' }, message });
}

function planBringingUp(view: JobView): StagePlan {
  const upkeep = keepUp(view, view.replicas, [steer(view, 'stable')]);
  return reach(view, upkeep, {
    reached: upkeep.sized && upkeep.steered,
    next: hasChecks('Testing', view.policy) ? { stage: 'Testing' } : afterTesting(view),
    message: `Waits for ${view.replicas} pods of ${view.job.spec.version} to become ready`,
    podsReady: upkeep.sized,
  });
}

function planTesting(view: JobView): StagePlan {
  const upkeep = keepUp(view, view.replicas, [steer(view, 'stable')]);
  return during(upkeep, planVerification(view, afterTesting(view)), latePods(view, view.replicas));
}

function afterTesting({ policy }: JobView): Next {
  return policy.blueGreen.autoPromote ? cutOver : { stage: 'Gate' };
}

function planGate(view: JobView): StagePlan {
  const upkeep = keepUp(view, view.replicas, [steer(view, 'stable')]);
  const message = `${view.job.spec.version} is ready; waits for promote`;
  const plan: StagePlan = {
    message,
    ...(isPromoted(view) ? { next: { ...cutOver, progress: { ...cutOver.progress, ...promoted(view) } } } : {}),
  };
  return during(upkeep, plan, latePods(view, view.replicas));
}

function planBaking(view: JobView): StagePlan {
  const { bakeSeconds } = view.policy.blueGreen;
  const upkeep = keepUp(view, view.replicas, [steer(view, 'extra')]);
  // The old pods have had no traffic for as long as the new ones were baked.
  const isDrained = bakeSeconds >= view.policy.drainSeconds;
  const next: Next = { stage: isDrained ? 'UpdatingWorkload' : 'Draining' };
  const plan = planVerification(view, next, untilMs(view, bakeSeconds));
  return during(upkeep, upkeep.sized ? plan : withoutNext(plan), missedPods(view, view.replicas));
}
