import type { CanaryStep } from '@rollcall/crds/types.gen.ts';
import { hasChecks } from '../analysis.ts';
import { readyForMs } from '../conditions.ts';
import { createCanaryServices } from '../extra-deployment.ts';
import { canaryReplicas } from '../replicas.ts';
import { routedServices } from '../start-checks.ts';
import { actualWeight } from '../traffic/actual-weight.ts';
import { canaryLagOf } from '../traffic/endpoints.ts';
import { steerRoutes } from '../traffic/http-route.ts';
import { type Pin, type Steering, steer } from '../traffic/selector.ts';
import { type JobView, readyCount } from '../view.ts';
import { cutOver } from './blue-green.ts';
import {
  isOver,
  isPromoted,
  type Next,
  type Progress,
  promoted,
  type Stage,
  type StagePlan,
  untilMs,
  withoutNext,
} from './strategy.ts';
import { during, keepUp, missedPods, planVerification, reach, type Upkeep } from './upkeep.ts';

/** So long the pods of a canary are ready before routes lead to them: gateways hear of them later than the API server does. */
const ROUTES_SETTLE_MS = 2000;

/** More and more traffic for the new version, each share verified. */
export const canaryStages = {
  Routing: { phase: 'Progressing', plan: planRouting },
  Stepping: { phase: 'Progressing', plan: planStepping },
  StepVerifying: { phase: 'Verifying', plan: planStepVerifying },
  StepPausing: { phase: 'Paused', plan: planStepPausing },
  FullUp: { phase: 'Progressing', plan: planFullUp },
} satisfies Record<string, Stage>;

/** Routes make the weights where there are any; then Services keep to the stable pods. */
function isRouted({ saved }: Pick<JobView, 'saved'>): boolean {
  return saved.routes.length > 0;
}

function planRouting(view: JobView): StagePlan {
  const steering = steer(view, 'stable', ['none']);
  const services = createCanaryServices(view, routedServices(view.around));
  return reach(
    view,
    { ...steering, changes: [...steering.changes, ...services], progress: {} },
    {
      reached: steering.done && services.length === 0,
      next: { stage: 'Stepping', progress: { step: 0, weight: 0 } },
      message: steering.waits ?? 'Pins the traffic to the pods that run',
    },
  );
}

function planStepping(view: JobView): StagePlan {
  const { weight } = stepOf(view);
  const before = previousPins(view);
  const { sized } = keepUp(view, sizeOf(view), []);
  const settlesMs = sized ? settlingMs(view) : 0;
  const lag = sized && isRouted(view) ? canaryLagOf(view, sizeOf(view)) : undefined;
  const isSettled = settlesMs === 0 && lag === undefined;
  const steerings = sized && isSettled ? steerStep(view, before) : holdBefore(view);
  const upkeep = keepUp(view, sizeOf(view), steerings);
  const plan = reach(view, upkeep, {
    reached: upkeep.sized && upkeep.steered,
    next: afterStepping(view),
    message: upkeep.waits ?? lag?.waits ?? `Brings ${view.job.spec.version} to ${weight} % of the traffic`,
    podsReady: upkeep.sized,
  });
  if (isSettled) return plan;
  const settledMs = settlesMs === 0 ? Infinity : view.nowMs + settlesMs;
  return { ...plan, lookAgainMs: Math.min(plan.lookAgainMs ?? Infinity, settledMs, lag?.lookAgainMs ?? Infinity) };
}

/** How long routes have to wait before they may lead to the first pods of a canary. */
function settlingMs(view: JobView): number {
  if (!isRouted(view) || (view.status.weight ?? 0) > 0) return 0;
  return Math.max(0, ROUTES_SETTLE_MS - readyForMs(view.status, view.nowMs));
}

/** Until there are pods enough nothing is moved, and nothing may have been. */
function holdBefore(view: JobView): readonly Steering[] {
  const [pin = 'none', ...others] = previousPins(view);
  const held = steer(view, pin, [...others, pinOfStep(view)]);
  // What is pinned elsewhere by now is where this step wants it.
  return [{ changes: [], done: false, ...(held.failure === undefined ? {} : { failure: held.failure }) }];
}

function steerStep(view: JobView, from: readonly Pin[]): readonly Steering[] {
  const pins = steer(view, pinOfStep(view), from);
  // Routes lead to canary pods that are ready, and only then are Services taken off the stable ones.
  return isRouted(view) ? [steerRoutes(view, weightOf(view)), pins] : [pins];
}

/** A Deployment that is scaled to nothing goes through its steps without pods, and its routes must not lead there. */
function weightOf(view: JobView): number {
  return readyCount(view.extra) === 0 ? 0 : stepOf(view).weight;
}

function afterStepping(view: JobView): Next {
  const progress: Progress = { weight: stepOf(view).weight };
  if (hasChecks('StepVerifying', view.policy)) return { stage: 'StepVerifying', progress };
  return afterChecks(view, progress);
}

function afterChecks(view: JobView, progress: Progress): Next {
  return stepOf(view).pauseSeconds === 0 ? afterStep(view, progress) : { stage: 'StepPausing', progress };
}

function planStepVerifying(view: JobView): StagePlan {
  return holdStep(view, planVerification(view, afterChecks(view, {})));
}

function planStepPausing(view: JobView): StagePlan {
  const { pauseSeconds, weight } = stepOf(view);
  const actual = actualWeight(view) ?? weight;
  const asked = actual === weight ? '' : ` (of ${weight} % asked for)`;
  const has = `${view.job.spec.version} has ${actual} % of the traffic${asked}`;
  if (isPromoted(view)) return holdStep(view, { message: has, next: afterStep(view, promoted(view)) });
  if (pauseSeconds === undefined) return holdStep(view, { message: `${has}; waits for promote` });
  if (isOver(view, pauseSeconds)) return holdStep(view, { message: has, next: afterStep(view, {}) });
  return holdStep(view, { message: `${has} for ${pauseSeconds} s`, lookAgainMs: untilMs(view, pauseSeconds) });
}

function afterStep(view: JobView, progress: Progress): Next {
  const step = (view.status.step ?? 0) + 1;
  return step < view.policy.canary.steps.length
    ? { stage: 'Stepping', progress: { ...progress, step } }
    : { stage: 'FullUp', progress };
}

function holdStep(view: JobView, plan: StagePlan): StagePlan {
  const upkeep = keepUp(view, sizeOf(view), steerStep(view, []));
  return during(upkeep, upkeep.sized && upkeep.steered ? plan : withoutNext(plan), missedPods(view, sizeOf(view)));
}

function planFullUp(view: JobView): StagePlan {
  const upkeep: Upkeep = keepUp(view, view.replicas, steerStep(view, []));
  return reach(view, upkeep, {
    reached: upkeep.sized && upkeep.steered,
    // Without a Service nothing is led elsewhere: the Deployment's own pods are next.
    next: view.saved.services.length === 0 ? { stage: 'UpdatingWorkload', progress: { weight: 100 } } : cutOver,
    message: `Waits for ${view.replicas} pods of ${view.job.spec.version} to become ready`,
    podsReady: upkeep.sized,
  });
}

function stepOf({ policy, status }: JobView): CanaryStep {
  return policy.canary.steps[status.step ?? 0] ?? { weight: 100, pauseSeconds: 0 };
}

function sizeOf(view: JobView): number {
  return canaryReplicas(view.replicas, stepOf(view).weight);
}

/** All traffic is a pin to the canary's pods; anything less is made by routes, or by how many pods there are. */
function pinOfStep(view: JobView): Pin {
  if (stepOf(view).weight >= 100) return 'extra';
  return isRouted(view) ? 'stable' : 'none';
}

/** Where the step before may have left the Services. */
function previousPins(view: JobView): readonly Pin[] {
  const step = view.status.step ?? 0;
  const before = isRouted(view) ? 'stable' : 'none';
  return step > 0 && (view.policy.canary.steps[step - 1]?.weight ?? 0) >= 100 ? ['extra'] : [before];
}
