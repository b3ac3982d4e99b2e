import type { DeliveryFailure, DeliveryJobStatus, DeliveryPhase } from '@rollcall/crds/types.gen.ts';
import type { Change } from '../../runtime/decision.ts';
import type { JobContext } from '../job/context.ts';

/** What is to be known of a stage beside what it does. */
interface StageTraits {
  readonly phase: DeliveryPhase;
  /** What is measured while it lasts. */
  readonly checks?: 'smokeTest' | 'analysis';
  /** Whether its checks start anew when it begins. */
  readonly verifies?: boolean;
  /** Whether the registry must have heard from the new version, where the policy asks for it. */
  readonly needsHeartbeat?: boolean;
  /**
   * Whether it lasts longer than its checks: those go on, and what is true of the last `count`
   * measurements counts.
   */
  readonly outlastsChecks?: boolean;
  /**
   * Nobody may get to the new version but by the job; a Service that it has not pinned would lead
   * there.
   */
  readonly isBeforeCutOver?: boolean;
  /**
   * Whether it moves traffic, and is over only when all who carry it know. Selectors and readiness
   * alone are not what proxies and gateways go by: the controller of EndpointSlices retries a
   * Service after 1, 2, 4, ... seconds, and is behind for that long.
   */
  readonly followsEndpoints?: boolean;
  /** The user's Deployment has the new version and the traffic. */
  readonly isLast?: boolean;
}

const early = { phase: 'Progressing', isBeforeCutOver: true } as const;
const verifying = { phase: 'Verifying', checks: 'analysis', verifies: true } as const;
const last = { phase: 'Promoting', isLast: true } as const;

/** The stages of all strategies, but for those before anything is saved. */
const stageTraits = {
  Updating: { phase: 'Progressing' },
  Verifying: { ...verifying, needsHeartbeat: true, outlastsChecks: true },

  Pinning: early,
  BringingUp: early,
  Testing: { ...verifying, checks: 'smokeTest', needsHeartbeat: true, isBeforeCutOver: true },
  Gate: { phase: 'Paused', isBeforeCutOver: true },
  Baking: { ...verifying, outlastsChecks: true },

  Routing: early,
  Stepping: { ...early, followsEndpoints: true },
  StepVerifying: { ...verifying, needsHeartbeat: true, isBeforeCutOver: true },
  StepPausing: { phase: 'Paused', checks: 'analysis', outlastsChecks: true, isBeforeCutOver: true },
  Withdrawing: { ...early, followsEndpoints: true },
  Shrinking: early,
  FullUp: early,

  CuttingOver: { phase: 'Progressing', followsEndpoints: true },
  Draining: { phase: 'Promoting' },
  UpdatingWorkload: { phase: 'Promoting' },
  HandingBack: { phase: 'Promoting', followsEndpoints: true },
  DrainingExtra: last,
  RemovingExtra: last,
  Finishing: last,

  Reverting: { phase: 'RollingBack', followsEndpoints: true },
  Restoring: { phase: 'RollingBack' },
} satisfies Record<string, StageTraits>;

export type StageName = keyof typeof stageTraits;

export function isStage(name: string | undefined): name is StageName {
  return name !== undefined && Object.hasOwn(stageTraits, name);
}

/** Undefined for a name that no stage has. */
export function traitsOf(name: string | undefined): StageTraits | undefined {
  return isStage(name) ? stageTraits[name] : undefined;
}

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
  /** Whether it is over, but for traffic or pods that are not where they have to be. */
  readonly isBlocked?: boolean;
  /** When time alone changes something, in epoch ms; Infinity: never. */
  readonly requeueAtMs?: number;
}

/** What each of some stages wants. */
export type StagePlans<Name extends StageName> = Readonly<Record<Name, (context: JobContext) => StagePlan>>;

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
