import type { HealthCheck, HealthCheckStatus } from '@rollcall/crds/types.gen.ts';

/** What one check has shown. */
export interface Outcome {
  readonly passed: boolean;
  /** For people; nothing of what the service sent but a status. */
  readonly message: string;
}

/** How a check has gone so far. */
export interface CheckState {
  /** Undefined: it has come to nothing yet. */
  readonly status: HealthCheckStatus | undefined;
  /** The last outcomes that were the same. */
  readonly streak: { readonly passed: boolean; readonly length: number } | undefined;
}

/**
 * Pure. The first success is enough to be Passing; whatever else is to change needs as many outcomes
 * in a row as the check says. The status stays the same object until it changes.
 */
export function nextState(
  { status, streak }: CheckState,
  outcome: Outcome,
  { check, now }: { readonly check: HealthCheck; readonly now: Date },
): CheckState {
  const { passed, message } = outcome;
  const length = streak?.passed === passed ? streak.length + 1 : 1;
  const needed = passed ? check.successThreshold : check.failureThreshold;
  const isEnough = length >= needed || (passed && status === undefined);
  const next = passed ? 'Passing' : 'Failing';
  const isChange = isEnough && status?.status !== next;
  return {
    status: isChange ? { status: next, since: now.toISOString(), message } : status,
    streak: { passed, length },
  };
}
