import { deliveryJobKind } from '@rollcall/crds/kinds.ts';
import type { DeliveryFailure, DeliveryJobStatus } from '@rollcall/crds/types.gen.ts';
import type { Change, Decision } from '../../runtime/decision.ts';
import { disown } from '../../runtime/field-manager.ts';
import { planPreparing } from '../start/preparing-stage.ts';
import { isFinished } from '../start/queue.ts';
import { planQueued, returnToQueue } from '../start/queued-stage.ts';
import { isStage, type Next, type Progress } from '../strategies/strategy.ts';
import { planCleanup } from './cleanup.ts';
import { buildContext, type JobContext } from './context.ts';
import { departureOf, withDeparture } from './departure.ts';
import { withDetails } from './details.ts';
import { endOf, failure } from './failures.ts';
import { findEscalation, findRollbackTrigger } from './rollback-triggers.ts';
import { reconstructState } from './saved-state.ts';
import type { JobSnapshot } from './snapshot.ts';
import { decide, describe, enterStage, type Fields, measured, planAt } from './stages.ts';
import { buildStatus, endStatus, writeStatus } from './status.ts';

const savedStateLost = failure(
  'SavedStateLost',
  'What the job had saved is gone; traffic goes to whatever the Deployment runs',
);

/** The next step of a delivery job; see docs/internals.md, "Deliver". */
export function planJob(snapshot: JobSnapshot): Decision {
  const { job } = snapshot;
  if (isFinished(job)) return planCleanup(snapshot);
  const stage = job.status?.stage;
  if (job.status === undefined || stage === undefined || stage === 'Queued') return planQueued(snapshot);
  if (stage === 'Preparing') {
    return snapshot.queue.ahead === undefined ? planPreparing(snapshot) : returnToQueue(snapshot);
  }
  return planStage(snapshot, job.status);
}

/**
 * Effects of a stage are made once it is in the status, so that whoever leads next knows of them.
 */
function planStage(snapshot: JobSnapshot, status: DeliveryJobStatus): Decision {
  const { job, saved } = snapshot;
  const context = buildContext(snapshot, saved ?? reconstructState(snapshot), status);
  const known = status.failure;
  const lost = saved === undefined || !isStage(status.stage) ? savedStateLost : undefined;
  if (known === undefined) {
    const trigger = lost ?? findRollbackTrigger(context);
    if (trigger !== undefined) return rollBack(context, trigger, {});
  }
  const plan = withDetails(context, planAt(context));
  if (known === undefined && plan.failure !== undefined) return rollBack(context, plan.failure, plan.progress);
  const worse = known === undefined ? undefined : (findEscalation(context, lost) ?? plan.failure);
  const fields = { ...plan.progress, ...(worse === undefined ? {} : { failure: worse }) };
  const changes = plan.changes ?? [];
  if (changes.length === 0 && plan.next !== undefined) return goTo(context, plan.next, fields);
  const update = describe({ context, plan, fields });
  const written = writeStatus(job, buildStatus(job, snapshot.now, update));
  const all = [...written, ...changes];
  return decide(context, written.length === 0 ? [...all, ...resetPromote(context)] : all, plan.requeueAtMs);
}

/** The next stage, or the end. */
function goTo(context: JobContext, { stage, progress, failure: late }: Next, fields: Fields): Decision {
  if (stage === 'Succeeded' || stage === 'Ended') return end(context, late ?? fields.failure ?? context.failure);
  return enterStage(context, stage, { ...fields, ...progress });
}

/** Traffic goes back with the very next write. */
function rollBack(context: JobContext, reason: DeliveryFailure, progress: Progress = {}): Decision {
  // The pods of a blue-green job that never had traffic have nothing to drain.
  const isUnused = context.saved.strategy === 'BlueGreen' && (context.status.weight ?? 0) === 0;
  const { analysis } = progress;
  return goTo(
    context,
    { stage: 'Reverting' },
    {
      failure: reason,
      ...(analysis === undefined ? {} : { analysis }),
      ...(isUnused ? { extraReplicas: 0 } : {}),
      ...(context.template === 'target' && context.cluster !== undefined
        ? { templateFingerprint: context.cluster.fingerprint }
        : {}),
    },
  );
}

function end(context: JobContext, undone: DeliveryFailure | undefined): Decision {
  const { job, snapshot, saved } = context;
  const { version } = job.spec;
  const status =
    undone === undefined
      ? endStatus(job, snapshot.now, {
          phase: 'Succeeded',
          ...(context.unchanged && context.status.oldVersion === version
            ? { reason: 'Unchanged', message: `${version} ran already; the job has changed nothing` }
            : { reason: 'Succeeded', message: withDeparture(departureOf(context), `${version} was delivered`) }),
          fields: { weight: 100, actualWeight: 100 },
        })
      : endStatus(job, snapshot.now, {
          phase: endOf(undone),
          ...undone,
          failure: undone,
          fields:
            saved.strategy === 'Rolling' && (endOf(undone) === 'RolledBack' || context.cluster === undefined)
              ? { weight: 0, actualWeight: 0 }
              : measured(context),
        });
  return { changes: writeStatus(job, status), requeueAfterMs: 0 };
}

/** A promote that was acted on is cleared, so that the next pause wants one of its own. */
function resetPromote({ job, status }: JobContext): readonly Change[] {
  const isUsed = job.spec.promote && job.metadata.generation === status.promotedGeneration;
  if (isUsed) return [{ action: 'patch', kind: deliveryJobKind, object: job, patch: { spec: { promote: false } } }];
  return disown(deliveryJobKind, job, ['metadata']);
}
