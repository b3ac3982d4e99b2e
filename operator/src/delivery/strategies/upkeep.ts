import type { DeliveryFailure } from '@rollcall/crds/types.gen.ts';
import { dueChecks, hasChecks, verificationEndsMs, verify } from '../checks/verification.ts';
import { areComingUp, blockedForMs, misplaced, missedForMs, unreadyForMs } from '../job/conditions.ts';
import { type JobContext, readyCount, readyIn } from '../job/context.ts';
import { failure } from '../job/failures.ts';
import type { PodGroup } from '../job/snapshot.ts';
import { ownServices, type Pin, pinOf, type Steering, steer, together } from '../traffic/selector.ts';
import { sizeExtra } from '../workload/extra-deployment.ts';
import { rolloutOf } from '../workload/rollout.ts';
import {
  isOver,
  isPromoted,
  type Next,
  type Progress,
  promoted,
  type StagePlan,
  untilMs,
  withoutNext,
} from './strategy.ts';

/** So long some of the pods that carry traffic may be unready before it goes back to the others. */
const MISSED_LIMIT_MS = 30_000;
/** While pods are missed. */
const RECHECK_MS = 5000;
/** The registry's view of a service is read this often while a verification waits for it. */
const HEARTBEAT_RECHECK_MS = 2000;

/**
 * What must hold throughout a stage: the size of the extra Deployment, and where the traffic is.
 */
export interface Upkeep extends Omit<Steering, 'done'> {
  readonly progress: Progress;
  readonly sized: boolean;
  readonly steered: boolean;
}

export function keepUp(context: JobContext, size: number, steerings: readonly Steering[]): Upkeep {
  const sizing = sizeExtra(context, size);
  const { done, ...steering } = together(steerings);
  return {
    ...steering,
    changes: [...sizing.changes, ...steering.changes],
    progress: { extraReplicas: sizing.extraReplicas },
    sized: sizing.ready,
    steered: done,
    failure: sizing.failure ?? steering.failure,
  };
}

/**
 * A stage that ends when something has come about, and fails when that lasts longer than the
 * progress deadline.
 */
export function reach(
  context: JobContext,
  upkeep: Omit<Upkeep, 'sized' | 'steered' | 'waits'>,
  goal: { readonly reached: boolean; readonly next: Next; readonly message: string; readonly podsReady?: boolean },
): StagePlan {
  const { changes, progress, requeueAtMs = Infinity } = upkeep;
  const seconds = context.policy.rolling.progressDeadlineSeconds;
  const late = !goal.reached && isOver(context, seconds) ? lateFailure(goal.message, seconds) : undefined;
  return {
    message: goal.message,
    changes,
    progress,
    podsReady: goal.podsReady,
    failure: upkeep.failure ?? late,
    ...(goal.reached ? { next: goal.next } : { requeueAtMs: Math.min(untilMs(context, seconds), requeueAtMs) }),
  };
}

export function lateFailure(message: string, seconds: number): DeliveryFailure {
  return failure('ProgressDeadlineExceeded', `After ${seconds} s without progress: ${message}`);
}

/** A stage that ends when its checks have passed, and `readyMs` has come. */
export function planVerification(context: JobContext, next: Next, readyMs = 0): StagePlan {
  const { verdict, message, results } = verify(context);
  const progress = { analysis: [...results] };
  if (verdict === 'failed') {
    if (context.policy.onFailure === 'RollBack')
      return { message, progress, failure: failure('ChecksFailed', message) };
    // Only a promote from after the failure is meant for it: one that is left over from before is
    // used up.
    const isHeld = context.status.phase === 'Paused';
    if (!isHeld || !isPromoted(context)) {
      const known = isHeld ? progress : { ...progress, ...promoted(context) };
      return { message: `${message}; waits for promote or abort`, progress: known, held: true };
    }
    // Where the stage cannot be left just now, the job stays held, and the promote with it.
    return { message, progress, held: true, next: goOn(next, { ...progress, ...promoted(context) }) };
  }
  if (verdict === 'passed' && context.nowMs >= readyMs) return { message, progress, next: goOn(next, progress) };
  const due = dueChecks(context.snapshot)
    .map(({ dueAt }) => dueAt.getTime())
    .filter((ms) => ms > context.nowMs);
  const poll = context.policy.requireHeartbeat ? [context.nowMs + HEARTBEAT_RECHECK_MS] : [];
  const end = verdict === 'passed' ? readyMs : verificationEndsMs(context);
  return {
    message: verdict === 'passed' ? bakingMessage(context, results.length > 0) : message,
    progress,
    requeueAtMs: Math.min(end, ...due, ...poll),
  };
}

function bakingMessage({ job, policy, status }: JobContext, hasResults: boolean): string {
  const seconds = status.stage === 'Baking' ? policy.blueGreen.bakeSeconds : policy.rolling.bakeSeconds;
  const waits = `${job.spec.version} has to stay ready for ${seconds} s`;
  return hasResults ? `All checks have passed so far; ${waits}` : waits;
}

/**
 * A pause in which the checks go on: what they find wrong ends it, or holds it, as in a
 * verification.
 */
export function planPause(context: JobContext, pause: StagePlan, next: Next): StagePlan {
  if (!hasChecks(context.status.stage ?? '', context.policy)) return pause;
  const { verdict, results } = verify(context);
  if (verdict === 'failed') return planVerification(context, next);
  const progress = { analysis: [...results] };
  const due = dueChecks(context.snapshot).map(({ dueAt }) => dueAt.getTime());
  return {
    ...pause,
    progress: { ...pause.progress, ...progress },
    next: pause.next && goOn(pause.next, progress),
    requeueAtMs: Math.min(pause.requeueAtMs ?? Infinity, ...due.filter((ms) => ms > context.nowMs)),
  };
}

function goOn(next: Next, progress: Progress): Next {
  return { ...next, progress: { ...progress, ...next.progress } };
}

/** What a stage waits for, and what must hold meanwhile. */
interface Throughout {
  readonly upkeep: Upkeep;
  readonly plan: StagePlan;
  readonly missed: Missed;
  /** Whether enough of it holds to leave the stage. */
  readonly holds: boolean;
}

/**
 * A stage throughout which something must hold. What keeps it from being left for as long as the
 * progress deadline, such as an API server that refuses to move traffic, does not mend itself.
 */
export function during(context: JobContext, { upkeep, plan, missed, holds }: Throughout): StagePlan {
  const joined = joinUpkeep(upkeep, holds ? plan : withoutNext(plan), missed);
  const isPending = upkeep.changes.length > 0;
  if (plan.next === undefined || (holds && !isPending)) return joined;
  const seconds = context.policy.rolling.progressDeadlineSeconds;
  const leftMs = seconds * 1000 - blockedForMs(context.status, context.nowMs);
  // What nobody has tried yet, as when no operator ran meanwhile, may well be taken.
  const isTried = !isPending || context.snapshot.refusal !== undefined;
  const late = leftMs <= 0 && isTried ? lateFailure(upkeep.waits ?? misplaced.message, seconds) : undefined;
  return {
    ...joined,
    isBlocked: true,
    failure: joined.failure ?? late,
    requeueAtMs: Math.min(joined.requeueAtMs ?? Infinity, context.nowMs + Math.max(0, leftMs)),
  };
}

/** Joins what must hold throughout a stage with what the stage waits for. */
export function joinUpkeep(upkeep: Upkeep, plan: StagePlan, missed: Missed): StagePlan {
  const times = [plan.requeueAtMs, missed.requeueAtMs, upkeep.requeueAtMs];
  return {
    ...plan,
    changes: [...upkeep.changes, ...(plan.changes ?? [])],
    progress: { ...plan.progress, ...upkeep.progress },
    podsReady: missed.podsReady,
    failure: upkeep.failure ?? missed.failure ?? plan.failure,
    requeueAtMs: Math.min(...times.map((ms = Infinity) => ms)),
  };
}

/** A stage that ends only while the extra pods are ready, and have the traffic that is theirs. */
export function whileCarrying(context: JobContext, stage: Omit<Throughout, 'holds'>): StagePlan {
  return during(context, { ...stage, holds: stage.upkeep.sized && stage.upkeep.steered });
}

/**
 * Pods that have become unready under traffic while the user's Deployment has ready ones, be they
 * old or new: none ready is acted on at once, some for a while.
 */
export function missedPods(context: JobContext, carrying: number): Missed {
  const ready = readyCount(context.extra);
  const podsReady = ready >= carrying;
  if (podsReady) return { podsReady };
  const deadlineMs = context.policy.rolling.progressDeadlineSeconds * 1000;
  const unreadyMs = unreadyForMs(context.status, context.nowMs);
  // Of a node that is drained or given back; nothing is wrong with the version.
  if (
    areReplaced(context.extra) &&
    unreadyMs < deadlineMs &&
    (ready > 0 || !isPinnedTo(context) || canDivert(context))
  ) {
    return { podsReady, requeueAtMs: context.nowMs + RECHECK_MS };
  }
  const others = readyIn(context.cluster?.replicaSets);
  // Pods that were asked for just now, of a Deployment that is scaled up from nothing, are coming
  // up; but not for ever.
  const isNew =
    (areComingUp(context.status) && unreadyMs < MISSED_LIMIT_MS) || (context.status.extraReplicas ?? 0) < carrying;
  const isHopeless = ready === 0 && others > 0 && !isNew;
  const isLate = unreadyMs >= deadlineMs;
  if (isHopeless || isLate || (missedForMs(context.status, context.nowMs) >= MISSED_LIMIT_MS && others > ready)) {
    const message = `${ready} of ${carrying} pods of ${context.job.spec.version} are ready`;
    return { podsReady, failure: failure('PodsNotReady', message) };
  }
  return { podsReady, requeueAtMs: context.nowMs + RECHECK_MS };
}

/**
 * Whether all pods that are missed were deleted or evicted: those in their stead are coming up, or
 * not there yet.
 */
export function areReplaced(group: PodGroup | undefined): boolean {
  return group?.pods.every(({ ready, isComingUp }) => ready || isComingUp === true) === true;
}

/** Whether a Service leads to the extra pods alone. */
function isPinnedTo(context: JobContext): boolean {
  return ownServices(context).some(({ service }) => pinOf(service) === context.extra?.hash);
}

/** Whether the user's Deployment can carry the traffic until the extra pods are back. */
function canDivert({ cluster, replicas }: JobContext): boolean {
  return replicas > 0 && readyIn(cluster?.replicaSets) >= replicas;
}

/**
 * All traffic to the extra pods. While all of them are being replaced it goes to the old pods; once
 * those are about to go, to all that are ready.
 */
export function steerToExtra(context: JobContext): Steering {
  const { extra, stable, cluster, template, replicas } = context;
  const isUpdating = template === 'target';
  const passing: readonly Pin[] = isUpdating ? ['stable', 'none'] : ['stable'];
  const isLost = readyCount(extra) === 0 && areReplaced(extra) && canDivert(context);
  if (!isLost) return steer(context, 'extra', passing);
  const isWhole = cluster !== undefined && rolloutOf(cluster.deployment) === 'complete';
  const isStable = !isUpdating && isWhole && readyCount(stable) >= replicas;
  const steering = isStable ? steer(context, 'stable', ['extra']) : steer(context, 'none', ['extra', 'stable']);
  return { ...steering, done: false };
}

/**
 * Pods without traffic that a stage cannot be left without. What prevents them for as long as the
 * progress deadline, such as an API server that refuses to scale them, does not mend itself.
 */
export function latePods(context: JobContext, wanted: number): Missed {
  const ready = readyCount(context.extra);
  const podsReady = ready >= wanted;
  if (podsReady) return { podsReady };
  const seconds = context.policy.rolling.progressDeadlineSeconds;
  if (unreadyForMs(context.status, context.nowMs) < seconds * 1000)
    return { podsReady, requeueAtMs: context.nowMs + RECHECK_MS };
  const message = `${ready} of ${wanted} pods of ${context.job.spec.version} are ready, after ${seconds} s`;
  return { podsReady, failure: failure('PodsNotReady', message) };
}

/** What {@link missedPods} returns of the pods that carry traffic. */
type Missed = Pick<StagePlan, 'failure' | 'requeueAtMs'> & { readonly podsReady: boolean };
