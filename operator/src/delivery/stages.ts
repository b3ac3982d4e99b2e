import type { DeliveryFailure, DeliveryJobStatus, DeliveryPhase } from '@rollcall/crds/types.gen.ts';
import type { Change, Decision } from '../runtime/decision.ts';
import type { Standing } from './conditions.ts';
import { buildStatus, type StatusUpdate, withDeparture, writeStatus } from './status.ts';
import { blueGreenStages } from './strategies/blue-green.ts';
import { canaryStages } from './strategies/canary.ts';
import { isUnclaimed, planClaiming } from './strategies/claiming.ts';
import { promotionStages } from './strategies/promotion.ts';
import { rollbackStages } from './strategies/rollback.ts';
import { rollingStages } from './strategies/rolling.ts';
import type { Progress, Stage, StageName, StagePlan } from './strategies/strategy.ts';
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

/** The row of the state machine; undefined for a name that it does not have. */
export function stageNamed(name: string | undefined): Stage | undefined {
  return isStage(name) ? stages[name] : undefined;
}

function isStage(name: string | undefined): name is StageName {
  return name !== undefined && Object.hasOwn(stages, name);
}

/** Status fields that change, at a stage or with it. */
export interface Fields extends Progress, Partial<Pick<DeliveryJobStatus, 'strategy' | 'stableHash'>> {
  readonly failure?: DeliveryFailure;
}

interface Entry extends Fields {
  /** When the job is to tell of it. */
  readonly departure?: Standing['departure'];
}

/** The status of a stage, and at once what that stage begins with. */
export function enterStage(view: JobView, stage: StageName, { departure, ...fields }: Entry): Decision {
  const { job, snapshot } = view;
  const analysis = verifying.has(stage) ? { analysis: [] } : {};
  const changed = { ...fields, ...analysis };
  const undone = fields.failure ?? view.failure;
  const begun = buildStatus(job, snapshot.now, { phase: 'Progressing', stage, message: '', fields: changed });
  const nextView = viewJob(snapshot, view.saved, begun);
  const row = stages[stage];
  const plan = row.plan(nextView);
  // What is wrong there is dealt with at the next look: its stage must be known first.
  const isSound = plan.failure === undefined || undone !== undefined;
  const all = { ...changed, ...(isSound ? plan.progress : {}), ...analysis };
  const update = { ...describe({ view: nextView, row, plan, fields: all }), departure };
  const written = writeStatus(job, buildStatus(job, snapshot.now, update));
  const told: readonly Change[] =
    departure === undefined ? [] : [{ action: 'event', regarding: job, type: 'Normal', ...departure }];
  return decide(view, [...written, ...told, ...(isSound ? (plan.changes ?? []) : [])], view.nowMs);
}

interface Standpoint {
  readonly view: JobView;
  readonly row: Stage;
  readonly plan: StagePlan;
  readonly fields: Fields;
}

/** Where a job stands at a stage, for its status. */
export function describe({ view, row, plan, fields }: Standpoint): StatusUpdate {
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

/** What share of the traffic the new version has, where that can be told. */
export function measured(view: JobView): Pick<DeliveryJobStatus, 'actualWeight'> {
  const weight = actualWeight(view);
  return weight === undefined ? {} : { actualWeight: weight };
}

function podsOf({ status }: JobView, { podsReady, progress }: StagePlan): Standing['pods'] {
  if (podsReady === undefined) return undefined;
  if (podsReady) return 'ready';
  return (progress?.extraReplicas ?? 0) > (status.extraReplicas ?? 0) ? 'growing' : 'short';
}

/** The stage's plan; another one as long as the Deployment lacks the claim of a job that goes forward. */
export function planAt(row: Stage, view: JobView): StagePlan {
  return isUnclaimed(view) ? planClaiming(view) : row.plan(view);
}

/** The changes of a job that has saved what it found, and when to look at it again. */
export function decide({ nowMs, saved }: JobView, changes: readonly Change[], lookAgainMs = Infinity): Decision {
  const nextMs = Math.min(lookAgainMs, saved.routes.length > 0 ? nowMs + ROUTES_LOOK_MS : Infinity);
  if (nextMs === Infinity) return { changes };
  // Nothing written and nothing to wait for would be a loop.
  const leastMs = changes.length === 0 ? IDLE_LOOK_MS : 0;
  return { changes, requeueAfterMs: Math.max(leastMs, nextMs - nowMs) };
}
