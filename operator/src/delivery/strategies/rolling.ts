import { hasChecks, verificationEndsMs } from '../analysis.ts';
import { missedForMs, readyForMs } from '../conditions.ts';
import { failure } from '../failures.ts';
import { type JobView, readyCount } from '../view.ts';
import { rolloutOf, updateWorkload } from '../workload.ts';
import type { Next, Stage, StagePlan } from './strategy.ts';
import { isOver, untilMs, withoutNext } from './strategy.ts';
import { lateFailure, planVerification } from './upkeep.ts';

/** The Deployment's own rolling update, followed to its end. */
export const rollingStages = {
  Updating: { phase: 'Progressing', plan: planUpdating },
  Verifying: { phase: 'Verifying', plan: planVerifying },
} satisfies Record<string, Stage>;

function planUpdating(view: JobView): StagePlan {
  const { policy, replicas, unchanged } = view;
  const bakes = policy.rolling.bakeSeconds > 0 && replicas > 0 && !unchanged;
  const next: Next = {
    stage: bakes || hasChecks('Verifying', policy) ? 'Verifying' : 'Finishing',
    progress: { weight: 100 },
  };
  return rollOut(view, next);
}

/** A version that falls over as soon as it is there has not been delivered: its pods have to stay ready, without a restart. */
function planVerifying(view: JobView): StagePlan {
  const { cluster, current, nowMs, policy, replicas, status } = view;
  const { bakeSeconds } = policy.rolling;
  // A job that began before there was such a field has saved a policy without it.
  const bakeMs = bakeSeconds > 0 ? bakeSeconds * 1000 : 0;
  const restarts = current?.pods.reduce((sum, pod) => sum + pod.restarts, 0) ?? 0;
  const isComplete = cluster !== undefined && rolloutOf(cluster.deployment) === 'complete';
  const ready = readyCount(current);
  const podsReady = isComplete && ready >= replicas && restarts <= (status.restarts ?? restarts);
  const bakedMs = nowMs - readyForMs(status, nowMs) + bakeMs;
  const plan = planVerification(view, { stage: 'Finishing' }, bakedMs);
  const told = { podsReady, progress: { ...plan.progress, restarts } };
  if (podsReady) return { ...plan, ...told };
  const message = `${ready} of ${replicas} pods of ${view.job.spec.version} are ready`;
  const limitMs = ready === 0 ? MISSED_LIMIT_MS : policy.rolling.progressDeadlineSeconds * 1000;
  // A job that is held has no end: it waits for somebody to decide.
  const isOverdue = plan.held !== true && nowMs >= verificationEndsMs(view) + bakeMs;
  const isMissed = missedForMs(status, nowMs) >= limitMs || isOverdue;
  const fault = plan.failure ?? (isMissed ? failure('PodsNotReady', `${message}, or not for long`) : undefined);
  return {
    ...withoutNext(plan),
    ...told,
    message: plan.next === undefined ? plan.message : message,
    lookAgainMs: Math.min(plan.lookAgainMs ?? Infinity, nowMs + LOOK_MISSED_MS),
    ...(fault === undefined ? {} : { failure: fault }),
  };
}

/** Beyond the progress deadline, as long as there is progress. */
const LOOK_MS = 30_000;
/** While pods are missed that were ready. */
const LOOK_MISSED_MS = 5000;
/** So long none of the pods of a version that was rolled out may be ready before it is taken back. */
const MISSED_LIMIT_MS = 30_000;

/** Gives the user's Deployment the new version and follows until all of its pods run it. */
export function rollOut(view: JobView, next: Next): StagePlan {
  const { cluster, policy, job, template, status } = view;
  const message = `Deployment ${status.workload?.name} rolls out ${job.spec.version}`;
  if (cluster === undefined) return { message };
  const seconds = policy.rolling.progressDeadlineSeconds;
  const late = { message, failure: lateFailure(message, seconds) };
  const changes = updateWorkload(view);
  // The API server, or who reviews for it, may refuse what the job wants for ever.
  if (changes.length > 0)
    return isOver(view, seconds) ? late : { message, changes, lookAgainMs: untilMs(view, seconds) };
  const progress = template === 'target' ? { templateFingerprint: cluster.fingerprint } : {};
  const rollout = rolloutOf(cluster.deployment);
  if (rollout === 'complete')
    return { message, progress, next: { ...next, progress: { ...progress, ...next.progress } } };
  if (!isOver(view, seconds)) return { message, progress, lookAgainMs: untilMs(view, seconds) };
  return rollout === 'stalled' ? { ...late, progress } : { message, progress, lookAgainMs: view.nowMs + LOOK_MS };
}
