import { type JobContext, readyCount } from '../job/context.ts';
import type { PodGroup } from '../job/snapshot.ts';

/** EndpointSlices are not watched. */
const RECHECK_MS = 1000;

/** What a stage waits for, and when it observes again. */
export interface Lag {
  readonly waits: string;
  readonly requeueAtMs: number;
}

/**
 * Whether one of the Services still leads to ready pods beside a group's, or to fewer than there
 * are of it. One that leads to no pod at all has no traffic to be waited for: in clusters whose
 * pods are made up nobody fills EndpointSlices.
 *
 * @returns undefined when all have followed, or nobody may know; where only this time nobody knows,
 * it is waited for.
 */
export function lagOf(context: JobContext, services: readonly string[], group: PodGroup | undefined): Lag | undefined {
  const { endpoints } = context.around;
  if (endpoints === undefined || endpoints === 'forbidden' || group === undefined) return undefined;
  if (endpoints === 'unknown') return services[0] === undefined ? undefined : lag(context, services[0]);
  const own = new Set(group.pods.map(({ name }) => name));
  const wanted = Math.min(readyCount(group), context.replicas);
  const late = services.find((name) => {
    const pods = endpoints.get(name);
    if (pods === undefined || pods.size === 0) return false;
    return pods.size < wanted || ![...pods].every((pod) => own.has(pod));
  });
  return late === undefined ? undefined : lag(context, late);
}

/**
 * Whether the Service that a job made for a canary leads to fewer pods than are to be there before
 * routes lead to it, while the one that it stands beside leads to any. A stage that has just begun
 * has not asked yet, and waits for that.
 */
export function canaryLagOf(context: JobContext, wanted: number): Lag | undefined {
  const { endpoints, extraServices } = context.around;
  if (endpoints === 'forbidden') return undefined;
  const seen = endpoints === 'unknown' ? undefined : endpoints;
  const late = [...extraServices].find(([name, { metadata }]) => {
    const isUsed = seen === undefined || (seen.get(name)?.size ?? 0) > 0;
    return isUsed && (seen?.get(metadata.name)?.size ?? 0) < wanted;
  });
  return late === undefined ? undefined : lag(context, late[1].metadata.name);
}

function lag({ nowMs, around }: JobContext, service: string): Lag {
  const doing = around.endpoints === 'unknown' ? 'Cannot list' : 'Waits for';
  return { waits: `${doing} the EndpointSlices of Service ${service}`, requeueAtMs: nowMs + RECHECK_MS };
}
