import type { DeliveryJobStatus, DeliveryPhase } from '@rollcall/crds/types.gen.ts';
import { type Condition, setCondition } from '@rollcall/platform/kube/conditions.ts';
import { isEnd } from '../start/queue.ts';
import type { Departure } from './snapshot.ts';

/** Whether the pods that the job relies on are ready. It is Unknown while they come up. */
const PODS_READY = 'PodsReady';
/**
 * False while the Deployment lacks the claim of a job that goes forward; else there is no such
 * condition.
 */
const CLAIMED = 'ClaimHeld';

/**
 * False while a stage cannot be left because traffic or pods are not where it wants them; else there
 * is no such condition.
 */
const IN_PLACE = 'InPlace';

/**
 * False where the job goes about it otherwise than it, or its policy, was asked to; else there is
 * no such condition.
 */
const AS_REQUESTED = 'AsRequested';

/** What conditions are made of. */
export interface Standing {
  readonly phase: DeliveryPhase;
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number;
  /** RFC 3339. */
  readonly at: string;
  /** Undefined: nothing is relied on. `growing`: more pods were just asked for. */
  readonly pods: 'ready' | 'short' | 'growing' | undefined;
  readonly isUnclaimed: boolean;
  readonly isBlocked: boolean;
  /** Once it is set it stays. */
  readonly departure: Departure | undefined;
}

/**
 * All conditions of a job: Progressing (it goes on by itself), Succeeded (Unknown until it ends),
 * PodsReady, ClaimHeld, InPlace, AsRequested.
 */
export function jobConditions(known: DeliveryJobStatus['conditions'], standing: Standing): Condition[] {
  const { phase, reason, message, observedGeneration, at } = standing;
  const said = { reason, message, observedGeneration };
  const isEnded = isEnd(phase);
  const isProgressing = !isEnded && phase !== 'Pending' && phase !== 'Paused';
  const isGone: Readonly<Record<string, boolean>> = {
    [PODS_READY]: true,
    [CLAIMED]: !standing.isUnclaimed,
    // While the claim is made again nobody knows.
    [IN_PLACE]: !standing.isBlocked && !standing.isUnclaimed,
  };
  let conditions: Condition[] = known?.filter(({ type }) => isGone[type] !== true) ?? [];
  conditions = setCondition(conditions, { type: 'Progressing', status: isProgressing ? 'True' : 'False', ...said }, at);
  const succeeded = isEnded ? (phase === 'Succeeded' ? 'True' : 'False') : 'Unknown';
  conditions = setCondition(conditions, { type: 'Succeeded', status: succeeded, ...said }, at);
  if (standing.isUnclaimed) {
    conditions = setCondition(conditions, { type: CLAIMED, status: 'False', ...unclaimed, observedGeneration }, at);
  }
  if (standing.isBlocked) {
    conditions = setCondition(conditions, { type: IN_PLACE, status: 'False', ...misplaced, observedGeneration }, at);
  }
  if (standing.departure !== undefined) {
    const requested = { type: AS_REQUESTED, status: 'False', ...standing.departure, observedGeneration } as const;
    conditions = setCondition(conditions, requested, at);
  }
  const pods = podsCondition(known, standing);
  return pods === undefined ? conditions : [...conditions, pods];
}

/** What it says that the job does otherwise than asked. */
export function departureIn(status: DeliveryJobStatus | undefined): Condition | undefined {
  return status?.conditions?.find(({ type }) => type === AS_REQUESTED);
}

const unclaimed = {
  reason: 'ClaimMissing',
  message: 'The Deployment lacks the claim of this job, which makes it again',
};

/** Of a stage that cannot be left. */
export const misplaced = {
  reason: 'ChangesPending',
  message: 'Traffic or pods are not where the job wants them',
};

function podsCondition(known: DeliveryJobStatus['conditions'], standing: Standing): Condition | undefined {
  const { pods, observedGeneration, at } = standing;
  if (pods === undefined) return undefined;
  const before = known?.find(({ type }) => type === PODS_READY);
  const status = podsStatus(pods, before?.status);
  const described = podsMessages[status];
  const [condition] = setCondition(
    before === undefined ? [] : [before],
    { type: PODS_READY, status, ...described, observedGeneration },
    at,
  );
  return condition;
}

/** Pods that were never ready are coming up; only pods that were ready can be missed. */
function podsStatus(pods: 'ready' | 'short' | 'growing', before: Condition['status'] | undefined): Condition['status'] {
  if (pods === 'ready') return 'True';
  return pods === 'short' && before !== undefined && before !== 'Unknown' ? 'False' : 'Unknown';
}

const podsMessages: Record<Condition['status'], Pick<Condition, 'reason' | 'message'>> = {
  True: { reason: 'Ready', message: 'The pods of the new version are ready' },
  False: { reason: 'Unready', message: 'Pods of the new version are no longer ready' },
  Unknown: { reason: 'ComingUp', message: 'The pods of the new version are coming up' },
};

/** How long pods that were ready have been missed, in ms. */
export function missedForMs(status: DeliveryJobStatus, nowMs: number): number {
  return sinceMs(status, nowMs, (known) => known.type === PODS_READY && known.status === 'False');
}

/** How long pods have been missed, or have been coming up, in ms. */
export function unreadyForMs(status: DeliveryJobStatus, nowMs: number): number {
  return sinceMs(status, nowMs, (known) => known.type === PODS_READY && known.status !== 'True');
}

/** Whether pods are coming up that were asked for and never ready yet. */
export function areComingUp({ conditions }: DeliveryJobStatus): boolean {
  return conditions?.some(({ type, status }) => type === PODS_READY && status === 'Unknown') === true;
}

/**
 * How long pods have been ready, in ms; 0 when they are not, or nobody has written yet that they
 * are.
 */
export function readyForMs(status: DeliveryJobStatus, nowMs: number): number {
  return sinceMs(status, nowMs, (known) => known.type === PODS_READY && known.status === 'True');
}

/**
 * How long a claim that was removed has been missing, in ms; 0 when nobody has written yet that it
 * is.
 */
export function unclaimedForMs(status: DeliveryJobStatus, nowMs: number): number {
  return sinceMs(status, nowMs, ({ type }) => type === CLAIMED);
}

/** How long traffic or pods have kept the stage from being left, in ms; 0 when they do not. */
export function blockedForMs(status: DeliveryJobStatus, nowMs: number): number {
  return sinceMs(status, nowMs, ({ type }) => type === IN_PLACE);
}

function sinceMs({ conditions }: DeliveryJobStatus, nowMs: number, counts: (condition: Condition) => boolean): number {
  const condition = conditions?.find(counts);
  return condition === undefined ? 0 : Math.max(0, nowMs - Date.parse(condition.lastTransitionTime));
}
