import { hasChecks, verificationEndsMs } from '../checks/verification.ts';
import { readyForMs, unreadyForMs } from '../job/conditions.ts';
import { type JobContext, readyCount } from '../job/context.ts';
import { failure } from '../job/failures.ts';
import { updateWorkload } from '../workload/changes.ts';
import { progressedAtMs, rolloutOf } from '../workload/rollout.ts';
import type { Next, StageName, StagePlan, StagePlans } from './strategy.ts';
import { isOver, untilMs, withoutNext } from './strategy.ts';
import { areReplaced, lateFailure, planVerification } from './upkeep.ts';

/** The Deployment's own rolling update, followed to its end. */
export const rollingStages = {
  Updating: planUpdating,
  Verifying: planVerifying,
} satisfies Partial<StagePlans<StageName>>;

function planUpdating(context: JobContext): StagePlan {
  const { policy, replicas, unchanged } = context;
  const bakes = policy.rolling.bakeSeconds > 0 && replicas > 0 && !unchanged;
  const next: Next = {
    stage: bakes || hasChecks('Verifying', policy) ? 'Verifying' : 'Finishing',
    progress: { weight: 100 },
  };
  return rollOut(context, next);
}

/**
 * A version that falls over as soon as it is there has not been delivered: its pods have to stay
 * ready, without a restart.
 */
function planVerifying(context: JobContext): StagePlan {
  const { cluster, current, nowMs, policy, replicas, status } = context;
  const { bakeSeconds } = policy.rolling;
  const bakeMs = bakeSeconds * 1000;
  const restarts = current?.pods.reduce((sum, pod) => sum + pod.restarts, 0) ?? 0;
  const isComplete = cluster !== undefined && rolloutOf(cluster.deployment) === 'complete';
  const ready = readyCount(current);
  const podsReady = isComplete && ready >= replicas && restarts <= (status.restarts ?? restarts);
  const bakedMs = nowMs - readyForMs(status, nowMs) + bakeMs;
  const plan = planVerification(context, { stage: 'Finishing' }, bakedMs);
  const observed = { podsReady, progress: { ...plan.progress, restarts } };
  if (podsReady) return { ...plan, ...observed };
  const message = `${ready} of ${replicas} pods of ${context.job.spec.version} are ready`;
  const limitMs =
    ready === 0 && !areReplaced(current) ? MISSED_LIMIT_MS : policy.rolling.progressDeadlineSeconds * 1000;
  // A job that is held has no end: it waits for somebody to decide.
  const isOverdue = plan.held !== true && nowMs >= verificationEndsMs(context) + bakeMs;
  // All of them were ready at the end of the rollout, whether or not this stage has seen it.
  const isMissed = unreadyForMs(status, nowMs) >= limitMs || isOverdue;
  return {
    ...withoutNext(plan),
    ...observed,
    message: plan.next === undefined ? plan.message : message,
    requeueAtMs: Math.min(plan.requeueAtMs ?? Infinity, nowMs + RECHECK_MISSED_MS),
    failure: plan.failure ?? (isMissed ? failure('PodsNotReady', `${message}, or not for long`) : undefined),
  };
}

/**
 * So long after the progress deadline the Deployment's controller may take to say that there is no
 * progress. One that is behind, or missed its own timer, is not waited for.
 */
const UNTOLD_MS = 30_000;
/** While pods are missed that were ready. */
const RECHECK_MISSED_MS = 5000;
/**
 * So long none of the pods of a version that was rolled out may be ready before it is rolled back.
 */
const MISSED_LIMIT_MS = 30_000;

/** Gives the user's Deployment the new version and follows until all of its pods run it. */
export function rollOut(context: JobContext, next: Next): StagePlan {
  const { cluster, policy, job, template, status } = context;
  const message = `Deployment ${status.workload?.name} rolls out ${job.spec.version}`;
  if (cluster === undefined) return { message };
  const seconds = policy.rolling.progressDeadlineSeconds;
  const late = { message, failure: lateFailure(message, seconds) };
  const changes = updateWorkload(context);
  // The API server, or who reviews for it, may refuse what the job wants for ever.
  const progress = template === 'target' ? { templateFingerprint: cluster.fingerprint } : {};
  if (changes.length > 0)
    return isOver(context, seconds) ? late : { message, progress, changes, requeueAtMs: untilMs(context, seconds) };
  const rollout = rolloutOf(cluster.deployment);
  if (rollout === 'complete')
    return { message, progress, next: { ...next, progress: { ...progress, ...next.progress } } };
  if (!isOver(context, seconds)) return { message, progress, requeueAtMs: untilMs(context, seconds) };
  if (rollout === 'stalled') return { ...late, progress };
  const { progressDeadlineSeconds = seconds } = cluster.deployment.spec;
  const sinceMs = Math.max(context.stageStartedMs, progressedAtMs(cluster.deployment));
  const toldMs = sinceMs + progressDeadlineSeconds * 1000 + UNTOLD_MS;
  return context.nowMs >= toldMs ? { ...late, progress } : { message, progress, requeueAtMs: toldMs };
}
