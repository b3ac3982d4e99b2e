import type { DeliveryFailure, DeliveryJobStatus } from '@rollcall/crds/types.gen.ts';
import type { Change, Decision } from '../../runtime/decision.ts';
import { blueGreenStages } from '../strategies/blue-green.ts';
import { canaryStages } from '../strategies/canary.ts';
import { isUnclaimed, planReclaim } from '../strategies/reclaim.ts';
import { rollbackStages } from '../strategies/rollback.ts';
import { rollingStages } from '../strategies/rolling.ts';
import { sharedStages } from '../strategies/shared-stages.ts';
import {
  isStage,
  type Progress,
  type StageName,
  type StagePlan,
  type StagePlans,
  traitsOf,
} from '../strategies/strategy.ts';
import { actualWeight } from '../traffic/actual-weight.ts';
import type { Standing } from './conditions.ts';
import { buildContext, type JobContext } from './context.ts';
import { departureOf, withDeparture } from './departure.ts';
import { buildStatus, type StatusUpdate, writeStatus } from './status.ts';

/** The whole state machine, but for what comes before anything is saved. */
const stages: StagePlans<StageName> = {
  ...rollingStages,
  ...blueGreenStages,
  ...canaryStages,
  ...sharedStages,
  ...rollbackStages,
};

const IDLE_RECHECK_MS = 100;
/**
 * HTTPRoutes are not watched: a change of one is seen by a read, also while a job waits for nothing
 * but a promote.
 */
const ROUTES_RECHECK_MS = 5000;

/** Status fields that change, at a stage or with it. */
export interface Fields extends Progress, Partial<Pick<DeliveryJobStatus, 'strategy' | 'stableHash'>> {
  readonly failure?: DeliveryFailure;
}

/** The status of a stage, and at once what that stage begins with. */
export function enterStage(context: JobContext, stage: StageName, fields: Fields): Decision {
  const { job, snapshot } = context;
  const analysis = traitsOf(stage)?.verifies === true ? { analysis: [] } : {};
  const changed = { ...fields, ...analysis };
  const undone = fields.failure ?? context.failure;
  const begun = buildStatus(job, snapshot.now, { phase: 'Progressing', stage, message: '', fields: changed });
  const nextContext = buildContext(snapshot, context.saved, begun);
  const plan = stages[stage](nextContext);
  // Faults there are handled at the next observation: its stage must be known first.
  const isSound = plan.failure === undefined || undone !== undefined;
  const all = { ...changed, ...(isSound ? plan.progress : {}), ...analysis };
  const update = describe({ context: nextContext, plan, fields: all });
  const written = writeStatus(job, buildStatus(job, snapshot.now, update));
  return decide(context, [...written, ...(isSound ? (plan.changes ?? []) : [])], context.nowMs);
}

interface Standpoint {
  readonly context: JobContext;
  readonly plan: StagePlan;
  readonly fields: Fields;
}

/** Where a job stands at a stage, for its status. */
export function describe({ context, plan, fields }: Standpoint): StatusUpdate {
  const { status } = context;
  const undone = fields.failure ?? context.failure;
  const forward = plan.held === true ? 'Paused' : traitsOf(status.stage)?.phase;
  const departure = undone === undefined ? departureOf(context) : undefined;
  const reason = undone?.reason ?? (plan.held === true ? 'ChecksFailed' : status.stage);
  return {
    phase: (undone === undefined ? forward : undefined) ?? 'RollingBack',
    stage: status.stage ?? '',
    reason,
    message: fields.failure?.message ?? withDeparture(departure, plan.message),
    fields: { ...fields, ...measured(context) },
    pods: podsOf(context, plan),
    isUnclaimed: isUnclaimed(context),
    isBlocked: plan.isBlocked === true,
    departure,
  };
}

/** What share of the traffic the new version has, where that is known. */
export function measured(context: JobContext): Pick<DeliveryJobStatus, 'actualWeight'> {
  const weight = actualWeight(context);
  return weight === undefined ? {} : { actualWeight: weight };
}

function podsOf({ status }: JobContext, { podsReady, progress }: StagePlan): Standing['pods'] {
  if (podsReady === undefined) return undefined;
  if (podsReady) return 'ready';
  return (progress?.extraReplicas ?? 0) > (status.extraReplicas ?? 0) ? 'growing' : 'short';
}

/**
 * The stage's plan; another one as long as the Deployment lacks the claim of a job that goes
 * forward.
 */
export function planAt(context: JobContext): StagePlan {
  if (isUnclaimed(context)) return planReclaim(context);
  const { stage } = context.status;
  return stages[isStage(stage) ? stage : 'Reverting'](context);
}

/** The changes of a job that has saved what it found, and when to observe it again. */
export function decide({ nowMs, saved }: JobContext, changes: readonly Change[], requeueAtMs = Infinity): Decision {
  const nextMs = Math.min(requeueAtMs, saved.routes.length > 0 ? nowMs + ROUTES_RECHECK_MS : Infinity);
  if (nextMs === Infinity) return { changes };
  // Nothing written and nothing to wait for would be a loop.
  const leastMs = changes.length === 0 ? IDLE_RECHECK_MS : 0;
  return { changes, requeueAfterMs: Math.max(leastMs, nextMs - nowMs) };
}
