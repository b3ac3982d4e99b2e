import type { CanaryStep } from '@rollcall/crds/types.gen.ts';
import { hasChecks } from '../checks/verification.ts';
import { readyForMs } from '../job/conditions.ts';
import { type JobContext, readyCount } from '../job/context.ts';
import { routedServices } from '../start/preflight.ts';
import { actualWeight } from '../traffic/actual-weight.ts';
import { canaryLagOf } from '../traffic/endpoints.ts';
import { introduceCanaries, lateRoute, steerRoutes } from '../traffic/http-route.ts';
import { isServed, type Pin, type Steering, steer, together } from '../traffic/selector.ts';
import { createCanaryServices, fullSize, shrinkExtra, surgeLimit } from '../workload/extra-deployment.ts';
import { rolloutOf } from '../workload/rollout.ts';
import { canaryReplicas } from './canary-replicas.ts';
import { cutOver } from './shared-stages.ts';
import {
  isOver,
  isPromoted,
  type Next,
  type Progress,
  promoted,
  type StageName,
  type StagePlan,
  type StagePlans,
  untilMs,
} from './strategy.ts';
import {
  keepUp,
  lateFailure,
  missedPods,
  planPause,
  planVerification,
  reach,
  type Upkeep,
  whileCarrying,
} from './upkeep.ts';

/**
 * So long EndpointSlices have the ready pods of a canary before routes lead there: gateways learn of
 * them later than the API server does.
 */
const ROUTES_SETTLE_MS = 2000;
/** A gateway that does not say by then that it leads to a canary is not waited for. */
const GATEWAYS_FOLLOW_MS = 30_000;
/** HTTPRoutes are not watched. */
const RECHECK_MS = 1000;

/** More and more traffic for the new version, each share verified. */
export const canaryStages = {
  Routing: planRouting,
  Stepping: planStepping,
  StepVerifying: planStepVerifying,
  StepPausing: planStepPausing,
  Withdrawing: planWithdrawing,
  Shrinking: planShrinking,
  FullUp: planFullUp,
} satisfies Partial<StagePlans<StageName>>;

/** Routes make the weights where there are any; then Services keep to the stable pods. */
function isRouted({ saved }: Pick<JobContext, 'saved'>): boolean {
  return saved.routes.length > 0;
}

function planRouting(context: JobContext): StagePlan {
  const steering = steer(context, 'stable', ['none']);
  const services = createCanaryServices(context, routedServices(context.around));
  return reach(
    context,
    { ...steering, changes: [...steering.changes, ...services], progress: {} },
    {
      reached: steering.done && services.length === 0,
      next: { stage: 'Stepping', progress: { step: 0, weight: 0 } },
      message: steering.waits ?? 'Pins the traffic to the pods that run',
    },
  );
}

function planStepping(context: JobContext): StagePlan {
  const { weight } = stepOf(context);
  if (mayShrink(context)) return { message: TOO_LARGE, next: { stage: 'Withdrawing' } };
  const before = previousPins(context);
  const { sized } = keepUp(context, sizeOf(context), []);
  const lag = sized && isRouted(context) ? canaryLagOf(context, sizeOf(context)) : undefined;
  const areKnown = sized && lag === undefined;
  const settlesMs = areKnown ? settlingMs(context) : 0;
  const introduction = areKnown ? introduce(context) : undefined;
  const isSettled = settlesMs === 0 && lag === undefined && introduction === undefined;
  const steerings = sized && isSettled ? steerStep(context, before) : holdBefore(context, introduction);
  const upkeep = keepUp(context, sizeOf(context), steerings);
  const plan = reach(context, upkeep, {
    reached: upkeep.sized && upkeep.steered,
    next: afterStepping(context),
    message: upkeep.waits ?? lag?.waits ?? `Brings ${context.job.spec.version} to ${weight} % of the traffic`,
    // The condition says since when the first pods are both ready and known.
    podsReady: upkeep.sized && (lag === undefined || hasTraffic(context)),
  });
  if (isSettled) return plan;
  const settledMs = settlesMs === 0 ? Infinity : context.nowMs + settlesMs;
  return { ...plan, requeueAtMs: Math.min(plan.requeueAtMs ?? Infinity, settledMs, lag?.requeueAtMs ?? Infinity) };
}

/** How long routes have to wait before they may lead to the first pods of a canary. */
function settlingMs(context: JobContext): number {
  if (!isRouted(context) || hasTraffic(context)) return 0;
  return Math.max(0, ROUTES_SETTLE_MS - readyForMs(context.status, context.nowMs));
}

function hasTraffic({ status }: JobContext): boolean {
  return (status.weight ?? 0) > 0;
}

/**
 * What comes before routes lead to the first pods of a canary; undefined once every gateway knows
 * where these are.
 */
function introduce(context: JobContext): Steering | undefined {
  if (!isRouted(context) || hasTraffic(context) || weightOf(context) === 0) return undefined;
  const changes = introduceCanaries(context);
  if (changes.length > 0) return { changes, done: false };
  const late = readyForMs(context.status, context.nowMs) < GATEWAYS_FOLLOW_MS ? lateRoute(context) : undefined;
  if (late === undefined) return undefined;
  const waits = `Waits for the gateways of HTTPRoute ${late.metadata.name}`;
  return { changes, done: false, waits, requeueAtMs: context.nowMs + RECHECK_MS };
}

/** Until there are pods enough nothing is moved, and nothing may have been. */
function holdBefore(context: JobContext, introduction?: Steering): readonly Steering[] {
  const [pin = 'none', ...others] = previousPins(context);
  const held = steer(context, pin, [...others, pinOfStep(context)]);
  // What is pinned elsewhere by now is where this step wants it.
  return [{ changes: [], done: false, failure: held.failure }, ...(introduction === undefined ? [] : [introduction])];
}

function steerStep(context: JobContext, from: readonly Pin[]): readonly Steering[] {
  const pins = steer(context, pinOfStep(context), from);
  // Routes lead to canary pods that are ready, and only then are Services unpinned from the stable
  // ones.
  return isRouted(context) ? [steerRoutes(context, weightOf(context)), pins] : [pins];
}

/**
 * A Deployment that is scaled to nothing goes through its steps without pods, and its routes must
 * not lead there.
 */
function weightOf(context: JobContext): number {
  if (readyCount(context.extra) === 0) return 0;
  const { weight } = stepOf(context);
  const size = sizeOf(context);
  const isLimited = size < canaryReplicas(context.replicas, weight);
  // No canary pod gets more than a pod of the Deployment would by itself.
  return isLimited ? Math.min(weight, Math.floor((100 * size) / context.replicas)) : weight;
}

function afterStepping(context: JobContext): Next {
  const progress: Progress = { weight: stepOf(context).weight };
  if (hasChecks('StepVerifying', context.policy)) return { stage: 'StepVerifying', progress };
  return afterChecks(context, progress);
}

function afterChecks(context: JobContext, progress: Progress): Next {
  return stepOf(context).pauseSeconds === 0 ? afterStep(context, progress) : { stage: 'StepPausing', progress };
}

function planStepVerifying(context: JobContext): StagePlan {
  return holdStep(context, planVerification(context, afterChecks(context, {})));
}

function planStepPausing(context: JobContext): StagePlan {
  const { weight } = stepOf(context);
  const actual = actualWeight(context) ?? weight;
  const asked = actual === weight ? '' : ` (of ${weight} % asked for)`;
  const has = `${context.job.spec.version} has ${actual} % of the traffic${asked}`;
  return holdStep(context, planPause(context, planWait(context, has), afterStep(context, {})));
}

function planWait(context: JobContext, message: string): StagePlan {
  const { pauseSeconds } = stepOf(context);
  if (isPromoted(context)) return { message, next: afterStep(context, promoted(context)) };
  if (pauseSeconds === undefined) return { message: `${message}; waits for promote` };
  if (isOver(context, pauseSeconds)) return { message, next: afterStep(context, {}) };
  return { message: `${message} for ${pauseSeconds} s`, requeueAtMs: untilMs(context, pauseSeconds) };
}

function afterStep(context: JobContext, progress: Progress): Next {
  const step = (context.status.step ?? 0) + 1;
  return step < context.policy.canary.steps.length
    ? { stage: 'Stepping', progress: { ...progress, step } }
    : { stage: 'FullUp', progress };
}

const TOO_LARGE = 'The canary is larger than its share of the Deployment';

function isTooLarge(context: JobContext): boolean {
  return stepOf(context).weight < 100 && (context.status.extraReplicas ?? 0) > sizeOf(context);
}

/** Of a Deployment that was scaled down; the others must be able to do without the canary meanwhile. */
function mayShrink(context: JobContext): boolean {
  const { cluster, replicas, stable, template } = context;
  if (!isTooLarge(context) || cluster === undefined) return false;
  const isWhole = template === 'saved' && rolloutOf(cluster.deployment) === 'complete';
  return replicas === 0 || (isWhole && readyCount(stable) >= replicas);
}

/** Which of the canary's pods go nobody can say: so all of them lose their traffic before. */
function withdraw(context: JobContext): Steering {
  // Who asks for no pods has no others that could take over.
  const pins = context.replicas === 0 ? [] : [steer(context, 'stable', ['none', 'extra'])];
  return together(isRouted(context) ? [steerRoutes(context, 0), ...pins] : pins);
}

function planWithdrawing(context: JobContext): StagePlan {
  if (!isTooLarge(context)) return { message: TOO_LARGE, next: { stage: 'Stepping' } };
  const { done, ...steering } = withdraw(context);
  const goal = { reached: done, next: { stage: 'Shrinking' }, message: TOO_LARGE } as const;
  return reach(context, { ...steering, progress: {} }, goal);
}

function planShrinking(context: JobContext): StagePlan {
  const { drainSeconds, rolling } = context.policy;
  const seconds = drainSeconds + rolling.progressDeadlineSeconds;
  const requeueAtMs = untilMs(context, seconds);
  const message = `${TOO_LARGE}: its pods are kept for ${drainSeconds} s without traffic`;
  if (isOver(context, seconds)) return { message, failure: lateFailure(message, seconds) };
  if (isTooLarge(context)) {
    const { failure, changes } = withdraw(context);
    if (failure !== undefined) return { message, failure };
    if (changes.length > 0) return { message, next: { stage: 'Withdrawing' } };
    const isDrained = context.replicas === 0 || isOver(context, drainSeconds);
    if (!isDrained) return { message, requeueAtMs: untilMs(context, drainSeconds) };
    const size = sizeOf(context);
    return { message, progress: { extraReplicas: size }, changes: shrinkExtra(context, size) ?? [], requeueAtMs };
  }
  const left = shrinkExtra(context, context.status.extraReplicas ?? 0);
  return left === undefined ? { message, next: { stage: 'Stepping' } } : { message, changes: left, requeueAtMs };
}

function holdStep(context: JobContext, plan: StagePlan): StagePlan {
  // A failed check is for somebody to decide on, and what is next comes first.
  if (mayShrink(context) && plan.failure === undefined && plan.held !== true && plan.next === undefined) {
    return { message: TOO_LARGE, next: { stage: 'Withdrawing' } };
  }
  const upkeep = keepUp(context, sizeOf(context), steerStep(context, []));
  return whileCarrying(context, { upkeep, plan, missed: missedPods(context, sizeOf(context)) });
}

function planFullUp(context: JobContext): StagePlan {
  const isLimited = surgeLimit(context) !== undefined;
  const size = fullSize(context);
  const upkeep: Upkeep = keepUp(context, size, isLimited ? joinPods(context) : steerStep(context, []));
  return reach(context, upkeep, {
    reached: upkeep.sized && upkeep.steered,
    // Where nothing is led to the canary alone, the Deployment's own pods are next.
    next: isLimited || !isServed(context.around) ? { stage: 'UpdatingWorkload', progress: { weight: 100 } } : cutOver,
    message: `Waits for ${size} pods of ${context.job.spec.version} to become ready`,
    podsReady: upkeep.sized,
  });
}

/** Canary pods serve as all others do: first the routes go back to the Services, then these to all pods. */
function joinPods(context: JobContext): readonly Steering[] {
  const routes = steerRoutes(context, undefined);
  return routes.done ? [routes, steer(context, 'none', ['stable'])] : [routes];
}

function stepOf({ policy, status }: JobContext): CanaryStep {
  return policy.canary.steps[status.step ?? 0] ?? { weight: 100, pauseSeconds: 0 };
}

function sizeOf(context: JobContext): number {
  return Math.min(canaryReplicas(context.replicas, stepOf(context).weight), surgeLimit(context) ?? Infinity);
}

/**
 * All traffic is a pin to the canary's pods; anything less is made by routes, or by how many pods
 * there are.
 */
function pinOfStep(context: JobContext): Pin {
  if (hasAllTraffic(context, stepOf(context).weight)) return 'extra';
  return isRouted(context) ? 'stable' : 'none';
}

/** Where the step before may have left the Services. */
function previousPins(context: JobContext): readonly Pin[] {
  const step = context.status.step ?? 0;
  const before: readonly Pin[] = isRouted(context) ? ['stable'] : ['none', 'stable'];
  return step > 0 && hasAllTraffic(context, context.policy.canary.steps[step - 1]?.weight)
    ? ['extra', 'stable']
    : before;
}

function hasAllTraffic(context: JobContext, weight = 0): boolean {
  return weight >= 100 && surgeLimit(context) === undefined;
}
