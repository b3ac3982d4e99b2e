import type { HealthCheckStatus, ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import { ailmentOf } from '@rollcall/platform/health-words.ts';
import type { Condition } from '@rollcall/platform/kube/conditions.ts';

type Status = ServiceRegistration['status'];
type HealthCondition = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;

export const HEALTHY = 'Healthy';

/**
 * The condition of an instance that has reported its health, or whose check has come to something;
 * undefined for others, which count as healthy. It is the same as long as the health is, whatever
 * the words are.
 */
export function healthCondition(status: Status, check: HealthCheckStatus | undefined): HealthCondition | undefined {
  const health = status?.health?.status;
  if (health === undefined && check === undefined) return undefined;
  const type = HEALTHY;
  const ailment = ailmentOf(health, check?.status);
  if (ailment === 'report') return { type, status: 'False', reason: 'Reported', message: `It reports '${health}'` };
  if (ailment === 'check') {
    return { type, status: 'False', reason: 'CheckFails', message: `Its check fails: ${check?.message}` };
  }
  return { type, status: 'True', reason: 'Well', message: 'Neither its report nor a check says otherwise' };
}

/** Whether the condition says that the instance is not healthy. */
export function isUnhealthy(conditions: readonly Pick<Condition, 'type' | 'status'>[] | undefined): boolean {
  return conditions?.some(({ type, status }) => type === HEALTHY && status === 'False') === true;
}
