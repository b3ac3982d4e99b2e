import { annotations } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import type { Deployment } from '@rollcall/platform/kube/builtin-kinds.ts';

/**
 * A job works on a Deployment only while its claim stands there, in the annotation
 * `rollcall.dev/delivering`. The claim is part of the object that it protects: whoever writes the
 * Deployment, with the resourceVersion that he saw, knows that the claim he saw is still there. It
 * names the job and, by the time at which the job left the queue, the pass in which the job made
 * it. Another job may replace it only once this pass is over, for which the job itself must have
 * been written: a write that begins the job by what was known in that pass fails then, however late
 * it comes.
 */
export interface Claim {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** `status.startedAt` of the job. */
  readonly startedAt: string;
  /** All of it, for comparisons. */
  readonly text: string;
}

/** Whose a Deployment is, to one job. What nobody is behind any more counts as none. */
export type ClaimState = 'own' | 'none' | 'other';

/**
 * A Deployment, and the text of the claim on it that nobody is behind any more, as far as is known.
 */
export interface Claimed {
  readonly deployment: Deployment;
  readonly abandonedClaim: string | undefined;
}

/** The claim of a job that has left the queue. */
export function ownClaim({ metadata, status }: DeliveryJob): string {
  const { namespace = '', name, uid = '' } = metadata;
  return [namespace, name, uid, status?.startedAt ?? ''].join('/');
}

/**
 * What a job marks a Deployment with by the very write of the template that makes this generation
 * of it: its claim, with the generation after it.
 */
export function writeMark(job: DeliveryJob, generation: number): string {
  return `${ownClaim(job)}/${generation}`;
}

/** Whether this generation of a Deployment is what the job's write of the template made. */
export function isMarked({ metadata }: Deployment, job: DeliveryJob): boolean {
  return metadata.annotations?.[annotations.delivering] === writeMark(job, metadata.generation ?? 0);
}

/** The claim on a Deployment; undefined where there is none, or nothing that could be one. */
export function claimOn({ metadata }: Deployment): Claim | undefined {
  const [namespace, name, uid, startedAt] = metadata.annotations?.[annotations.delivering]?.split('/') ?? [];
  if (namespace === undefined || name === undefined || uid === undefined || startedAt === undefined) return undefined;
  return { namespace, name, uid, startedAt, text: [namespace, name, uid, startedAt].join('/') };
}

export function claimState(claimed: Claimed, job: DeliveryJob): ClaimState {
  if (claimOn(claimed.deployment)?.text === ownClaim(job)) return 'own';
  return claimInTheWay(claimed, job) === undefined ? 'none' : 'other';
}

/**
 * The claim that keeps a job from making its own; undefined when nothing does. One of the same job
 * in another pass is in the way too: it is this view of the job that may be the old one.
 */
export function claimInTheWay({ deployment, abandonedClaim }: Claimed, job: DeliveryJob): Claim | undefined {
  const claim = claimOn(deployment);
  return claim?.text === ownClaim(job) || claim?.text === abandonedClaim ? undefined : claim;
}
