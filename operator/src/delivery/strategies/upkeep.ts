import type { DeliveryFailure } from '@rollcall/crds/types.gen.ts';
import type { Change } from '../../runtime/decision.ts';
import { dueChecks, verificationEndsMs, verify } from '../analysis.ts';
import { areComingUp, missedForMs, unreadyForMs } from '../conditions.ts';
import { sizeExtra } from '../extra-deployment.ts';
import { failure } from '../failures.ts';
import type { Steering } from '../traffic/selector.ts';
import { type JobView, readyCount } from '../view.ts';
import { isOver, isPromoted, type Next, type Progress, promoted, type StagePlan, untilMs } from './strategy.ts';

/** So long some of the pods that carry traffic may be unready before it goes back to those that are not. */
const MISSED_LIMIT_MS = 30_000;
/** While pods are missed. */
const LOOK_MS = 5000;
/** The registry's view of a service is looked at this often while a verification waits for it. */
const HEARTBEAT_LOOK_MS = 2000;

/** What must hold throughout a stage: the size of the extra Deployment, and where the traffic is. */
export interface Upkeep {
  readonly changes: readonly Change[];
  readonly progress: Progress;
  readonly sized: boolean;
  readonly steered: boolean;
  readonly waits: string | undefined;
  /** When time alone changes something, in epoch ms. */
  readonly lookAgainMs?: number;
  readonly failure?: DeliveryFailure;
}

export function keepUp(view: JobView, size: number, steerings: readonly Steering[]): Upkeep {
  const sizing = sizeExtra(view, size);
  const fault = sizing.failure ?? steerings.find((steering) => steering.failure !== undefined)?.failure;
  return {
    changes: [...sizing.changes, ...steerings.flatMap(({ changes }) => changes)],
    progress: { extraReplicas: sizing.extraReplicas },
    sized: sizing.ready,
    steered: steerings.every(({ done }) => done),
    waits: steerings.find(({ waits }) => waits !== undefined)?.waits,
    lookAgainMs: Math.min(...steerings.map(({ lookAgainMs = Infinity }) => lookAgainMs)),
    ...(fault === undefined ? {} : { failure: fault }),
  };
}

/** A stage that ends when something has come about, and fails when that takes longer than the progress deadline. */
export function reach(
  view: JobView,
  upkeep: Omit<Upkeep, 'sized' | 'steered' | 'waits'>,
  goal: { readonly reached: boolean; readonly next: Next; readonly message: string; readonly podsReady?: boolean },
): StagePlan {
  const { changes, progress, lookAgainMs = Infinity } = upkeep;
  const seconds = view.policy.rolling.progressDeadlineSeconds;
  const late = !goal.reached && isOver(view, seconds) ? lateFailure(goal.message, seconds) : undefined;
  const fault = upkeep.failure ?? late;
  return {
    message: goal.message,
    changes,
    progress,
    ...(goal.podsReady === undefined ? {} : { podsReady: goal.podsReady }),
    ...(fault === undefined ? {} : { failure: fault }),
    ...(goal.reached ? { next: goal.next } : { lookAgainMs: Math.min(untilMs(view, seconds), lookAgainMs) }),
  };
}

export function lateFailure(message: string, seconds: number): DeliveryFailure {
  return failure('ProgressDeadlineExceeded', `After ${seconds} s without progress: ${message}`);
}

/** A stage that ends when its checks have passed, and `readyMs` has come. */
export function planVerification(view: JobView, next: Next, readyMs = 0): StagePlan {
  const { verdict, message, results } = verify(view);
  const progress = { analysis: [...results] };
  if (verdict === 'failed') {
    if (view.policy.onFailure === 'RollBack') return { message, progress, failure: failure('ChecksFailed', message) };
    // Only a promote from after the failure is meant for it: one that is left over from before is used up.
    const isHeld = view.status.phase === 'Paused';
    if (!isHeld || !isPromoted(view)) {
      const known = isHeld ? progress : { ...progress, ...promoted(view) };
      return { message: `${message}; waits for promote or abort`, progress: known, held: true };
    }
    // Where the stage cannot be left just now, the job stays held, and the promote with it.
    return { message, progress, held: true, next: goOn(next, { ...progress, ...promoted(view) }) };
  }
  if (verdict === 'passed' && view.nowMs >= readyMs) return { message, progress, next: goOn(next, progress) };
  const due = dueChecks(view.snapshot)
    .map(({ dueAt }) => dueAt.getTime())
    .filter((ms) => ms > view.nowMs);
  const poll = view.policy.requireHeartbeat ? [view.nowMs + HEARTBEAT_LOOK_MS] : [];
  const end = verdict === 'passed' ? readyMs : verificationEndsMs(view);
  return {
    message: verdict === 'passed' ? 'All checks have passed so far' : message,
    progress,
    lookAgainMs: Math.min(end, ...due, ...poll),
  };
}

function goOn(next: Next, progress: Progress): Next {
  return { ...next, progress: { ...progress, ...next.progress } };
}

/** Joins what must hold throughout a stage with what the stage waits for. */
export function during(upkeep: Upkeep, plan: StagePlan, missed: Partial<StagePlan> = {}): StagePlan {
  const fault = upkeep.failure ?? missed.failure ?? plan.failure;
  const looks = [plan.lookAgainMs, missed.lookAgainMs, upkeep.lookAgainMs];
  const lookAgainMs = Math.min(...looks.map((ms = Infinity) => ms));
  return {
    ...plan,
    changes: [...upkeep.changes, ...(plan.changes ?? [])],
    progress: { ...plan.progress, ...upkeep.progress },
    ...(missed.podsReady === undefined ? {} : { podsReady: missed.podsReady }),
    ...(fault === undefined ? {} : { failure: fault }),
    ...(lookAgainMs === Infinity ? {} : { lookAgainMs }),
  };
}

/**
 * Pods that have become unready under traffic while the user's Deployment has ready ones, be they old or new: none ready is acted
 * on at once, some for a while.
 */
export function missedPods(view: JobView, carrying: number): Missed {
  const ready = readyCount(view.extra);
  const podsReady = ready >= carrying;
  if (podsReady) return { podsReady };
  const others = view.cluster?.replicaSets.reduce((sum, group) => sum + readyCount(group), 0) ?? 0;
  // Those that were asked for just now, of a Deployment that is scaled up from nothing, are coming up; but not for ever.
  const unreadyMs = unreadyForMs(view.status, view.nowMs);
  const isNew =
    (areComingUp(view.status) && unreadyMs < MISSED_LIMIT_MS) || (view.status.extraReplicas ?? 0) < carrying;
  const isHopeless = ready === 0 && others > 0 && !isNew;
  const deadlineMs = view.policy.rolling.progressDeadlineSeconds * 1000;
  const isLate = unreadyMs >= deadlineMs;
  if (isHopeless || isLate || (missedForMs(view.status, view.nowMs) >= MISSED_LIMIT_MS && others > ready)) {
    const message = `${ready} of ${carrying} pods of ${view.job.spec.version} are ready`;
    return { podsReady, failure: failure('PodsNotReady', message) };
  }
  return { podsReady, lookAgainMs: view.nowMs + LOOK_MS };
}

/**
 * Pods without traffic that a stage cannot be left without. What keeps them away for as long as the progress deadline, such as an
 * API server that refuses to scale them, does not mend itself.
 */
export function latePods(view: JobView, wanted: number): Missed {
  const ready = readyCount(view.extra);
  const podsReady = ready >= wanted;
  if (podsReady) return { podsReady };
  const seconds = view.policy.rolling.progressDeadlineSeconds;
  if (unreadyForMs(view.status, view.nowMs) < seconds * 1000) return { podsReady, lookAgainMs: view.nowMs + LOOK_MS };
  const message = `${ready} of ${wanted} pods of ${view.job.spec.version} are ready, after ${seconds} s`;
  return { podsReady, failure: failure('PodsNotReady', message) };
}

/** What {@link missedPods} tells of the pods that carry traffic. */
type Missed = Pick<StagePlan, 'failure' | 'lookAgainMs'> & { readonly podsReady: boolean };
