import { hasChecks } from '../analysis.ts';
import type { JobView } from '../view.ts';
import { complaintOf, rolloutOf, updateWorkload } from '../workload.ts';
import type { Next, Stage, StagePlan } from './strategy.ts';
import { isOver, untilMs } from './strategy.ts';
import { lateFailure, planVerification } from './upkeep.ts';

/** The Deployment's own rolling update, followed to its end. */
export const rollingStages = {
  Updating: { phase: 'Progressing', plan: planUpdating },
  Verifying: { phase: 'Verifying', plan: (view) => planVerification(view, { stage: 'Finishing' }) },
} satisfies Record<string, Stage>;

function planUpdating(view: JobView): StagePlan {
  const next: Next = {
    stage: hasChecks('Verifying', view.policy) ? 'Verifying' : 'Finishing',
    progress: { weight: 100 },
  };
  return rollOut(view, next);
}

/** Beyond the progress deadline, as long as there is progress. */
const LOOK_MS = 30_000;

/** Gives the user's Deployment the new version and follows until all of its pods run it. */
export function rollOut(view: JobView, next: Next): StagePlan {
  const { cluster, policy, job, template, status } = view;
  const message = `Deployment ${status.workload?.name} rolls out ${job.spec.version}`;
  if (cluster === undefined) return { message };
  const seconds = policy.rolling.progressDeadlineSeconds;
  const late = { message, failure: lateFailure(message + complaintOf(cluster.deployment), seconds) };
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
