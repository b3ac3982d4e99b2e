import type { DeliveryFailure } from '@rollcall/crds/types.gen.ts';
import type { StagePlan } from './strategies/strategy.ts';
import type { JobView } from './view.ts';
import { complaintOf } from './workload.ts';

/** So long nobody asks why a pod is not ready that waits for what every pod waits for. */
const USUAL_WAIT_MS = 10_000;

/** Failures that say only that something took too long, or not why. */
const unexplained: ReadonlySet<string> = new Set(['ProgressDeadlineExceeded', 'PodsNotReady', 'RollbackIncomplete']);

/**
 * A plan whose message, and whose failure where that is one of time, also say what is in the way: what the API server refuses, or
 * why pods are not ready.
 */
export function withDetails(view: JobView, plan: StagePlan): StagePlan {
  const refused = view.snapshot.refusal?.message;
  const pods = podTrouble(view);
  const details = [refused, pods?.message].filter((text) => text !== undefined);
  const { failure, lookAgainMs = Infinity } = plan;
  const looks = Math.min(lookAgainMs, pods?.tellAgainMs ?? Infinity);
  return {
    ...plan,
    message: explained(plan.message, details),
    ...(failure !== undefined && unexplained.has(failure.reason) ? { failure: explain(failure, details) } : {}),
    ...(looks === Infinity ? {} : { lookAgainMs: looks }),
  };
}

function explain(failure: DeliveryFailure, details: readonly string[]): DeliveryFailure {
  return { ...failure, message: explained(failure.message, details) };
}

function explained(message: string, details: readonly string[]): string {
  const news = details.filter((detail) => !message.includes(detail));
  return news.length === 0 ? message : `${message} (${news.join('; ')})`;
}

interface Trouble {
  readonly message?: string;
  /** When there may be more to tell, in epoch ms. */
  readonly tellAgainMs?: number;
}

/** What keeps the pods from becoming ready that the job waits for: those of the new version, on the way back those of the old one. */
function podTrouble({ extra, current, template, around, cluster, failure, nowMs, stageStartedMs }: JobView): Trouble {
  const isOwn = template === 'target' || failure !== undefined;
  const deployments = [around.extra?.deployment, isOwn ? cluster?.deployment : undefined];
  const complaint = deployments.map((deployment) => deployment && complaintOf(deployment)).find(Boolean);
  if (complaint !== undefined) return { message: complaint };
  const groups = [failure === undefined ? extra : undefined, isOwn ? current : undefined];
  const waits = groups
    .flatMap((group) => group?.pods ?? [])
    .flatMap((pod) => (pod.waits === undefined ? [] : [pod.waits]));
  const wait = waits.find(({ isUsual }) => !isUsual) ?? waits[0];
  if (wait === undefined) return {};
  const toldMs = stageStartedMs + USUAL_WAIT_MS;
  return wait.isUsual && nowMs < toldMs ? { tellAgainMs: toldMs } : { message: wait.message };
}
