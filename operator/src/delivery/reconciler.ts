import { deliveryJobKind } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob, DeliveryJobStatus } from '@rollcall/crds/types.gen.ts';
import { controllerRevisionKind, httpRouteKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import { objectKey, type Store } from '@rollcall/platform/kube/store.ts';
import { StaleError } from '../runtime/apply.ts';
import type { Reconciler } from '../runtime/controller.ts';
import type { Change, Decision } from '../runtime/decision.ts';
import type { EventRecorder } from '../runtime/events.ts';
import { planJob } from './job/plan.ts';
import type { JobSnapshot } from './job/snapshot.ts';
import type { DeliveryMetrics } from './metrics.ts';
import type { DeliveryObserver } from './observe/delivery-observer.ts';
import type { Refusals } from './observe/refusals.ts';
import { isEnd, isFinished, isLetGo } from './start/queue.ts';

export interface DeliveryReconcilerDeps {
  readonly jobs: Store<DeliveryJob>;
  readonly observer: DeliveryObserver;
  readonly concurrency: number;
  readonly metrics: DeliveryMetrics;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly refusals: Refusals;
  /** Asks for another reconciliation of a job at once. */
  readonly requeue: (jobKey: string) => void;
}

/** Moves jobs from stage to stage; see docs/internals.md, "Deliver". */
export function deliveryReconciler(deps: DeliveryReconcilerDeps): Reconciler<JobSnapshot> {
  const { jobs, observer } = deps;

  return {
    name: 'delivery',
    concurrency: deps.concurrency,
    // Whoever has begun is to come to an end before others begin: of many jobs at once the first
    // are done early, none later.
    isUrgent(key) {
      const job = jobs.get(key);
      return job?.status?.startedAt !== undefined && !isFinished(job);
    },
    *keys() {
      for (const job of jobs.values()) {
        if (!isLetGo(job)) yield objectKey(job);
      }
    },
    observe: (key) => observer.observe(key),
    plan: planJob,
    onApplied(snapshot, decision) {
      observer.applied(snapshot);
      if (decision.changes.some(isUnwatched)) deps.requeue(objectKey(snapshot.job));
      const end = isFinished(snapshot.job) ? undefined : endIn(decision);
      if (end !== undefined) deps.metrics.finished(snapshot, end);
    },
    onFailed(key, error) {
      const job = jobs.get(key);
      if (job === undefined) return;
      if (!(error instanceof StaleError)) observer.failed(job);
      const news = deps.refusals.note(job, error);
      if (news === undefined) return;
      deps.events.record({ regarding: job, type: 'Warning', reason: 'ChangeRejected', message: news.message });
    },
    // Whatever the API server rejects, the job's deadline has to be seen.
    retriesTerminalErrors: true,
  };
}

/** Of these kinds there is no copy that would show the change. */
function isUnwatched(change: Change): boolean {
  return change.action !== 'event' && (change.kind === httpRouteKind || change.kind === controllerRevisionKind);
}

/** The status that ends the job, where the decision writes one. */
function endIn({ changes }: Decision): DeliveryJobStatus | undefined {
  for (const change of changes) {
    if (change.action !== 'status' || change.kind !== deliveryJobKind) continue;
    const { phase, ...rest }: Partial<DeliveryJobStatus> = change.status;
    if (phase !== undefined && isEnd(phase)) return { phase, ...rest };
  }
  return undefined;
}
