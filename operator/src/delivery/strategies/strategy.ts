import type { DeliveryFailure, DeliveryJobStatus, DeliveryPhase } from '@rollcall/crds/types.gen.ts';
import type { Change } from '../../runtime/decision.ts';
import type { JobContext } from '../job/context.ts';

/** The states of all strategies, but for those before anything is saved. */
export type StageName =
  | 'Updating'
  | 'Verifying'
  | 'Pinning'
  | 'BringingUp'
  | 'Testing'
  | 'Gate'
  | 'CuttingOver'
  | 'Baking'
  | 'Routing'
  | 'Stepping'
  | 'StepVerifying'
  | 'StepPausing'
  | 'Withdrawing'
  | 'Shrinking'
  | 'FullUp'
  | 'Draining'
  | 'UpdatingWorkload'
  | 'HandingBack'
  | 'DrainingExtra'
  | 'RemovingExtra'
  | 'Finishing'
  | 'Reverting'
  | 'Restoring';

/** Status fields that a stage keeps up. */
export type Progress = Pick<
  DeliveryJobStatus,
  'step' | 'weight' | 'extraReplicas' | 'restarts' | 'analysis' | 'templateFingerprint' | 'promotedGeneration'
>;

/** The stage that follows, with the status fields that change with it. */
export interface Next {
  readonly stage: StageName | 'Succeeded' | 'Ended';
  readonly progress?: Progress;
  /** Why the job ends otherwise than it was about to. */
  readonly failure?: DeliveryFailure;
}

/** What a stage wants. */
export interface StagePlan {
  /** For people. */
  readonly message: string;
  /** To be made in order, none of them on the job; `progress` is in the status before. */
  readonly changes?: readonly Change[];
  readonly progress?: Progress;
  /** Once there is nothing left to change. */
  readonly next?: Next | undefined;
  /** Ends the job's way forward. */
  readonly failure?: DeliveryFailure | undefined;
  /** A failed check in a policy that holds: the job waits for someone to decide. */
  readonly held?: boolean;
  /** Whether the pods that the stage relies on are ready; undefined: it relies on none. */
  readonly podsReady?: boolean | undefined;
  /** When time alone changes something, in epoch ms; Infinity: never. */
  readonly requeueAtMs?: number;
}

/** One row of the state machine. */
export interface Stage {
  readonly phase: DeliveryPhase;
  readonly plan: (context: JobContext) => StagePlan;
}

/** When a time that began with the stage is over. */
export function untilMs({ stageStartedMs }: JobContext, seconds: number): number {
  return stageStartedMs + seconds * 1000;
}

export function isOver(context: JobContext, seconds: number): boolean {
  return context.nowMs >= untilMs(context, seconds);
}

/** Whether someone has asked for the current pause to end, which was not acted on yet. */
export function isPromoted({ job, status }: JobContext): boolean {
  return job.spec.promote && (job.metadata.generation ?? 0) > (status.promotedGeneration ?? 0);
}

/** The step after a promoted pause: one promote ends one pause. */
export function promoted({ job }: JobContext): Progress {
  return { promotedGeneration: job.metadata.generation ?? 0 };
}

/** Nobody goes on while something is missing. */
export function withoutNext(plan: StagePlan): StagePlan {
  return { ...plan, next: undefined };
}
