import { Counter, type Registry } from 'prom-client';
import type { LossReason } from './planner-child.ts';

/** @returns what counts a process of planners that is gone. */
export function createPlannerMetrics(metrics: Registry): (reason: LossReason) => void {
  const lost = new Counter({
    name: 'rollcall_federation_planners_lost_total',
    help: 'Processes of planners that have ended by themselves, or because a plan was beyond a limit.',
    labelNames: ['reason'],
    registers: [metrics],
  });
  return (reason) => lost.inc({ reason });
}
