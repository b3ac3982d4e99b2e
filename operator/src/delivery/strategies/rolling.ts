import { hasChecks } from '../analysis.ts';
import type { JobView } from '../view.ts';
import { rolloutOf, updateWorkload } from '../workload.ts';
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

/** Gives the user's Deployment the new version and follows until all of its pods run it. */
export function rollOut(view: JobView, next: Next): StagePlan {
  const { cluster, policy, job, template, status } = view;
  const message = `Deployment ${status.workload?.name} rolls out ${job.spec.version}`;
  const changes = updateWorkload(view);
  if (changes.length > 0 || cluster === undefined) return { message, changes };
  const progress = template === 'target' ? { templateFingerprint: cluster.fingerprint } : {};
  const rollout = rolloutOf(cluster.deployment);
  if (rollout === 'complete')
    return { message, progress, next: { ...next, progress: { ...progress, ...next.progress } } };
  const seconds = policy.rolling.progressDeadlineSeconds;
  const isLate = rollout === 'stalled' && isOver(view, seconds);
  return {
    message,
    progress,
    ...(isLate ? { failure: lateFailure(message, seconds) } : { lookAgainMs: untilMs(view, seconds) }),
  };
}
