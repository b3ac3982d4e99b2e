import { deliveryJobKind } from '@rollcall/crds/kinds.ts';
import type {
  AnalysisResult,
  DeliveryFailure,
  DeliveryJob,
  DeliveryJobStatus,
  DeliveryPhase,
} from '@rollcall/crds/types.gen.ts';
import type { Change } from '../../runtime/decision.ts';
import { isEnd } from '../start/queue.ts';
import { isSameJson } from '../workload/fingerprint.ts';
import { departureIn, jobConditions, type Standing } from './conditions.ts';

/** Of the custom resource; a status that exceeds them is refused, and the job would never end. */
const REASON_LIMIT = 256;
const MESSAGE_LIMIT = 4096;
const VERSION_LIMIT = 256;
const RESULT_LIMIT = 1024;
const MILESTONES_LIMIT = 256;

/** What changes in a status; the rest stays as it is. */
export interface StatusUpdate {
  readonly phase: DeliveryPhase;
  readonly stage: string;
  /** Absent: the name of the stage. */
  readonly reason?: string | undefined;
  readonly message: string;
  readonly fields?: Partial<
    Omit<DeliveryJobStatus, 'phase' | 'stage' | 'reason' | 'message' | 'milestones' | 'conditions'>
  >;
  readonly pods?: Standing['pods'];
  /** False by default. */
  readonly isUnclaimed?: boolean;
  /** False by default. */
  readonly isBlocked?: boolean;
  readonly departure?: Standing['departure'];
}

/**
 * Every field of the status, all of which the operator owns: server-side apply removes what it
 * leaves out.
 */
export function buildStatus(job: DeliveryJob, now: Date, update: StatusUpdate): DeliveryJobStatus {
  const { conditions, ...known } = job.status ?? { phase: 'Pending' as const };
  const at = now.toISOString();
  const observedGeneration = job.metadata.generation ?? 0;
  const reason = cut(update.reason ?? update.stage, REASON_LIMIT);
  const message = cut(update.message, MESSAGE_LIMIT);
  const { phase, stage, pods, isUnclaimed = false, isBlocked = false, departure } = update;
  const standing = { phase, reason, message, observedGeneration, at, pods, isUnclaimed, isBlocked, departure };
  const isNewStage = stage !== known.stage || (update.fields?.step ?? known.step) !== known.step;
  const status = {
    ...known,
    ...(isNewStage ? { stageStartedAt: at } : {}),
    ...withinLimits(update.fields ?? {}),
    phase,
    stage,
    reason,
    message,
    observedGeneration,
    conditions: jobConditions(conditions, standing),
  };
  return { ...status, ...milestonesOf(status, at) };
}

/**
 * A status is overwritten before everybody has seen it; what it came to stays. There are fewer
 * milestones than the limit, even of a policy with all the steps that it may have.
 */
function milestonesOf(
  { milestones = [], phase, step, weight }: DeliveryJobStatus,
  at: string,
): Pick<DeliveryJobStatus, 'milestones'> {
  const isKnown = milestones.some((known) => known.phase === phase && known.step === step);
  if (isKnown || phase === 'Pending' || isEnd(phase) || milestones.length >= MILESTONES_LIMIT) return {};
  const milestone = { phase, ...(step === undefined ? {} : { step }), ...(weight === undefined ? {} : { weight }), at };
  return { milestones: [...milestones, milestone] };
}

/** What pods, checks, services and users have said may be of any length. */
function withinLimits(fields: NonNullable<StatusUpdate['fields']>): NonNullable<StatusUpdate['fields']> {
  const { oldVersion, failure, analysis } = fields;
  return {
    ...fields,
    ...(oldVersion === undefined ? {} : { oldVersion: cut(oldVersion, VERSION_LIMIT) }),
    ...(failure === undefined
      ? {}
      : { failure: { reason: cut(failure.reason, REASON_LIMIT), message: cut(failure.message, MESSAGE_LIMIT) } }),
    ...(analysis === undefined ? {} : { analysis: analysis.map(resultWithinLimits) }),
  };
}

function resultWithinLimits(result: AnalysisResult): AnalysisResult {
  return result.message === undefined ? result : { ...result, message: cut(result.message, RESULT_LIMIT) };
}

/** Half a character would be stored as another one, and be written again and again. */
function cut(text: string, limit: number): string {
  return text.slice(0, limit).toWellFormed();
}

/**
 * The write of a status, with an Event when the phase is another, and one for what the job is to do
 * otherwise than asked; nothing when it says what is stored.
 */
export function writeStatus(job: DeliveryJob, status: DeliveryJobStatus): readonly Change[] {
  if (isSameJson(inOrder(job.status), inOrder(status))) return [];
  const write: Change = { action: 'status', kind: deliveryJobKind, object: job, status };
  const isReported = job.status?.phase !== status.phase || job.status?.failure?.reason !== status.failure?.reason;
  return [write, ...(isReported ? [phaseEvent(job, status)] : []), ...departureEvents(job, status)];
}

/** The API server may list conditions in another order than they were written in. */
function inOrder(status: DeliveryJobStatus | undefined): DeliveryJobStatus | undefined {
  if (status?.conditions === undefined) return status;
  return { ...status, conditions: status.conditions.toSorted((a, b) => (a.type < b.type ? -1 : 1)) };
}

function phaseEvent(job: DeliveryJob, { phase, reason = phase, message = '', failure }: DeliveryJobStatus): Change {
  const isWarning = failure !== undefined || phase === 'Failed';
  return {
    action: 'event',
    regarding: job,
    type: isWarning ? 'Warning' : 'Normal',
    reason: isWarning ? reason : phase,
    message: `${phase}: ${message}`,
  };
}

function departureEvents(job: DeliveryJob, status: DeliveryJobStatus): readonly Change[] {
  const departure = departureIn(status);
  if (departure === undefined || departure.reason === departureIn(job.status)?.reason) return [];
  const { reason, message } = departure;
  return [{ action: 'event', regarding: job, type: 'Normal', reason, message }];
}

/** The last status of a job. */
export function endStatus(
  job: DeliveryJob,
  now: Date,
  end: {
    readonly phase: 'Succeeded' | 'RolledBack' | 'Failed';
    readonly reason: string;
    readonly message: string;
    readonly failure?: DeliveryFailure;
    readonly fields?: StatusUpdate['fields'];
  },
): DeliveryJobStatus {
  const { phase, reason, message, failure, fields } = end;
  return buildStatus(job, now, {
    phase,
    stage: phase,
    reason,
    message,
    fields: { ...fields, finishedAt: now.toISOString(), ...(failure === undefined ? {} : { failure }) },
  });
}
