import { deliveryJobKind } from '@rollcall/crds/kinds.ts';
import type { DeliveryFailure, DeliveryJobStatus, DeliveryPhase } from '@rollcall/crds/types.gen.ts';
import type { Change, Decision } from '../runtime/decision.ts';
import type { Standing } from './conditions.ts';
import { endOf, failure } from './failures.ts';
import { planFinished } from './finished.ts';
import { findEscalation, findInterruption } from './interruptions.ts';
import { planPreparing } from './preparation.ts';
import { isFinished } from './queue.ts';
import { planQueued, returnToQueue } from './queueing.ts';
import { reconstructState } from './saved-state.ts';
import type { JobSnapshot } from './snapshot.ts';
import { buildStatus, endStatus, type StatusUpdate, withDeparture, writeStatus } from './status.ts';
import { blueGreenStages } from './strategies/blue-green.ts';
import { canaryStages } from './strategies/canary.ts';
import { isUnclaimed, planClaiming } from './strategies/claiming.ts';
import { promotionStages } from './strategies/promotion.ts';
import { rollbackStages } from './strategies/rollback.ts';
import { rollingStages } from './strategies/rolling.ts';
import type { Next, Progress, Stage, StageName, StagePlan } from './strategies/strategy.ts';
import { actualWeight } from './traffic/actual-weight.ts';
import { type JobView, viewJob } from './view.ts';

/** The whole state machine, but for what comes before anything is saved. */
const stages: Readonly<Record<StageName, Stage>> = {
  ...rollingStages,
  ...blueGreenStages,
  ...canaryStages,
  ...promotionStages,
  ...rollbackStages,
};

/** Stages whose checks start anew when they begin. */
const verifying: ReadonlySet<string> = new Set(['Verifying', 'Testing', 'Baking', 'StepVerifying']);

const IDLE_LOOK_MS = 100;
/** HTTPRoutes are not watched: that somebody has changed one is seen by looking, also while a job waits for nothing but a promote. */
const ROUTES_LOOK_MS = 5000;

const savedStateLost = failure(
  'SavedStateLost',
  'What the job had saved is gone; traffic goes to whatever the Deployment runs',
);

/** The next step of a delivery job; see docs/architecture.md, "Deliver". */
export function planJob(snapshot: JobSnapshot): Decision {
  const { job } = snapshot;
  if (isFinished(job)) return planFinished(snapshot);
  const stage = job.status?.stage;
  if (job.status === undefined || stage === undefined || stage === 'Queued') return planQueued(snapshot);
  if (stage === 'Preparing') {
    return snapshot.queue.ahead === undefined ? planPreparing(snapshot) : returnToQueue(snapshot);
  }
  return planStage(snapshot, job.status);
}

/** Effects of a stage are made once it is in the status, so that whoever leads next knows of them. */
function planStage(snapshot: JobSnapshot, status: DeliveryJobStatus): Decision {
  const { job, saved } = snapshot;
  const view = viewJob(snapshot, saved ?? reconstructState(snapshot), status);
  const stage = isStage(status.stage) ? stages[status.stage] : undefined;
  const known = status.failure;
  const lost = saved === undefined || stage === undefined ? savedStateLost : undefined;
  if (known === undefined) {
    const interruption = lost ?? findInterruption(view);
    if (interruption !== undefined) return rollBack(view, interruption, {});
  }
  const row = stage ?? stages.Reverting;
  const plan = isUnclaimed(view) ? planClaiming(view) : row.plan(view);
  if (known === undefined && plan.failure !== undefined) return rollBack(view, plan.failure, plan.progress);
  const worse = known === undefined ? undefined : (findEscalation(view, lost) ?? plan.failure);
  const fields = { ...plan.progress, ...(worse === undefined ? {} : { failure: worse }) };
  const changes = plan.changes ?? [];
  if (changes.length === 0 && plan.next !== undefined) return goTo(view, plan.next, fields);
  const update = describe({ view, row, plan, fields });
  const written = writeStatus(job, buildStatus(job, snapshot.now, update));
  const all = [...written, ...changes];
  return decide(view, written.length === 0 ? [...all, ...resetPromote(view)] : all, plan.lookAgainMs);
}

function isStage(name: string | undefined): name is StageName {
  return name !== undefined && Object.hasOwn(stages, name);
}

type Fields = Progress & { readonly failure?: DeliveryFailure };

interface Standpoint {
  readonly view: JobView;
  readonly row: Stage;
  readonly plan: StagePlan;
  readonly fields: Fields;
}

/** Where a job stands at a stage, for its status. */
function describe({ view, row, plan, fields }: Standpoint): StatusUpdate {
  const { status } = view;
  const undone = fields.failure ?? view.failure;
  const phase: DeliveryPhase = undone !== undefined ? 'RollingBack' : plan.held === true ? 'Paused' : row.phase;
  const reason = undone?.reason ?? (plan.held === true ? 'ChecksFailed' : status.stage);
  const pods = podsOf(view, plan);
  return {
    phase,
    stage: status.stage ?? '',
    ...(reason === undefined ? {} : { reason }),
    message: fields.failure?.message ?? (undone === undefined ? withDeparture(view.saved, plan.message) : plan.message),
    fields: { ...fields, ...measured(view) },
    ...(pods === undefined ? {} : { pods }),
    isUnclaimed: isUnclaimed(view),
  };
}

function measured(view: JobView): Pick<DeliveryJobStatus, 'actualWeight'> {
  const weight = actualWeight(view);
  return weight === undefined ? {} : { actualWeight: weight };
}

function podsOf({ status }: JobView, { podsReady, progress }: StagePlan): Standing['pods'] {
  if (podsReady === undefined) return undefined;
  if (podsReady) return 'ready';
  return (progress?.extraReplicas ?? 0) > (status.extraReplicas ?? 0) ? 'growing' : 'short';
}

/** The status of the next stage, and at once what that stage begins with. */
function goTo(view: JobView, { stage, progress, failure: late }: Next, fields: Fields): Decision {
  const { job, snapshot } = view;
  if (stage === 'Succeeded' || stage === 'Ended') return end(view, late ?? fields.failure ?? view.failure);
  const analysis = verifying.has(stage) ? { analysis: [] } : {};
  const changed = { ...fields, ...progress, ...analysis };
  const undone = fields.failure ?? view.failure;
  const begun = buildStatus(job, snapshot.now, { phase: 'Progressing', stage, message: '', fields: changed });
  const nextView = viewJob(snapshot, view.saved, begun);
  const row = stages[stage];
  const plan = row.plan(nextView);
  // What is wrong there is dealt with at the next look: its stage must be known first.
  const isSound = plan.failure === undefined || undone !== undefined;
  const all = { ...changed, ...(isSound ? plan.progress : {}), ...analysis };
  const update = describe({ view: nextView, row, plan, fields: all });
  const written = writeStatus(job, buildStatus(job, snapshot.now, update));
  return decide(view, [...written, ...(isSound ? (plan.changes ?? []) : [])], view.nowMs);
}

/** Traffic goes back with the very next write. */
function rollBack(view: JobView, reason: DeliveryFailure, progress: Progress = {}): Decision {
  // The pods of a blue-green job that never had traffic have nothing to drain.
  const isUnused = view.saved.strategy === 'BlueGreen' && (view.status.weight ?? 0) === 0;
  const { analysis } = progress;
  return goTo(
    view,
    { stage: 'Reverting' },
    {
      failure: reason,
      ...(analysis === undefined ? {} : { analysis }),
      ...(isUnused ? { extraReplicas: 0 } : {}),
      ...(view.template === 'target' && view.cluster !== undefined
        ? { templateFingerprint: view.cluster.fingerprint }
        : {}),
    },
  );
}

function end(view: JobView, undone: DeliveryFailure | undefined): Decision {
  const { job, snapshot, saved } = view;
  const { version } = job.spec;
  const status =
    undone === undefined
      ? endStatus(job, snapshot.now, {
          phase: 'Succeeded',
          reason: 'Succeeded',
          message: withDeparture(saved, `${version} runs`),
          fields: { weight: 100, actualWeight: 100 },
        })
      : endStatus(job, snapshot.now, {
          phase: endOf(undone),
          ...undone,
          failure: undone,
          fields:
            saved.strategy === 'Rolling' && endOf(undone) === 'RolledBack'
              ? { weight: 0, actualWeight: 0 }
              : measured(view),
        });
  return { changes: writeStatus(job, status), requeueAfterMs: 0 };
}

/** A promote that was acted on is taken back, so that the next pause wants one of its own. */
function resetPromote({ job, status }: JobView): readonly Change[] {
  const isUsed = job.spec.promote && job.metadata.generation === status.promotedGeneration;
  return isUsed ? [{ action: 'patch', kind: deliveryJobKind, object: job, patch: { spec: { promote: false } } }] : [];
}

function decide({ nowMs, saved }: JobView, changes: readonly Change[], lookAgainMs = Infinity): Decision {
  const nextMs = Math.min(lookAgainMs, saved.routes.length > 0 ? nowMs + ROUTES_LOOK_MS : Infinity);
  if (nextMs === Infinity) return { changes };
  // Nothing written and nothing to wait for would be a loop.
  const leastMs = changes.length === 0 ? IDLE_LOOK_MS : 0;
  return { changes, requeueAfterMs: Math.max(leastMs, nextMs - nowMs) };
}
