import type { Deployment } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { StagePlan } from '../strategies/strategy.ts';
import { complaintOf } from '../workload/rollout.ts';
import type { JobContext } from './context.ts';
import type { PodGroup } from './snapshot.ts';

/** So long nobody asks why a pod is not ready that waits for what every pod waits for. */
const USUAL_WAIT_MS = 10_000;

/** Failures that say only that something was too slow, or not why. */
const unexplained: ReadonlySet<string> = new Set(['ProgressDeadlineExceeded', 'PodsNotReady', 'RollbackIncomplete']);

/**
 * A plan whose message, and whose failure where that is one of time, also say what is in the way:
 * what the API server refuses, or why pods are not ready.
 */
export function withDetails(context: JobContext, plan: StagePlan): StagePlan {
  const refused = context.snapshot.refusal?.message;
  const pods = podTrouble(context);
  const details = [refused, pods.message];
  const { failure, requeueAtMs = Infinity } = plan;
  return {
    ...plan,
    message: explained(plan.message, details),
    failure:
      failure !== undefined && unexplained.has(failure.reason)
        ? { ...failure, message: explained(failure.message, details) }
        : failure,
    requeueAtMs: Math.min(requeueAtMs, pods.recheckAtMs ?? Infinity),
  };
}

/** A message with what it does not say yet of the details. */
export function explained(message: string, details: readonly (string | undefined)[]): string {
  const news = details.filter((detail) => detail !== undefined && !message.includes(detail));
  return news.length === 0 ? message : `${message} (${news.join('; ')})`;
}

interface Trouble {
  readonly message?: string;
  /** When there may be more to say, in epoch ms. */
  readonly recheckAtMs?: number;
}

/**
 * What keeps the pods from becoming ready that the job waits for: those of the new version, on the
 * way back those of the old one.
 */
function podTrouble(context: JobContext): Trouble {
  const { extra, current, template, around, cluster, failure } = context;
  const isOwn = template === 'target' || failure !== undefined;
  const waitedFor = {
    deployments: [around.extra?.deployment, isOwn ? cluster?.deployment : undefined],
    groups: [failure === undefined ? extra : undefined, isOwn ? current : undefined],
  };
  return findTrouble(waitedFor, context.stageStartedMs, context.nowMs);
}

interface WaitedFor {
  readonly deployments: readonly (Deployment | undefined)[];
  readonly groups: readonly (PodGroup | undefined)[];
}

/**
 * What keeps pods that are waited for from being made, or from becoming ready.
 *
 * @param sinceMs since when they are waited for, in epoch ms.
 */
export function findTrouble({ deployments, groups }: WaitedFor, sinceMs: number, nowMs: number): Trouble {
  const complaint = deployments.map((deployment) => deployment && complaintOf(deployment)).find(Boolean);
  if (complaint !== undefined) return { message: complaint };
  const waits = groups
    .flatMap((group) => group?.pods ?? [])
    .flatMap((pod) => (pod.waits === undefined ? [] : [pod.waits]));
  const wait = waits.find(({ isUsual }) => !isUsual) ?? waits[0];
  if (wait === undefined) return {};
  const explainedAtMs = sinceMs + USUAL_WAIT_MS;
  return wait.isUsual && nowMs < explainedAtMs ? { recheckAtMs: explainedAtMs } : { message: wait.message };
}
