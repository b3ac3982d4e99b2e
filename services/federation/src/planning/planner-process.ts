import { errorMessage } from '@rollcall/platform/errors.ts';
import { type AskPlanner, createPlanner } from '../execution/planner.ts';
import type { Order, Report } from './messages.ts';

/** The program of a process of planners; see `createPlanners`. */

const planners = new Map<number, AskPlanner>();

/** None gets an answer once the parent has gone. */
function report(message: Report): void {
  process.send?.(message, undefined, undefined, () => undefined);
}

function load(planner: number, sdl: string): void {
  try {
    planners.set(planner, createPlanner(sdl));
    report({ kind: 'loaded', planner });
  } catch (error) {
    report({ kind: 'loaded', planner, failure: errorMessage(error) });
  }
}

async function plan({ planner, plan, query, operationName }: Extract<Order, { readonly kind: 'plan' }>): Promise<void> {
  try {
    const ask = planners.get(planner);
    if (ask === undefined) throw new Error('There is no such planner');
    report({ kind: 'planned', plan, made: await ask(query, operationName) });
  } catch (error) {
    report({ kind: 'failed', plan, failure: errorMessage(error) });
  }
}

process.on('message', (order: Order) => {
  if (order.kind === 'load') load(order.planner, order.sdl);
  else if (order.kind === 'plan') void plan(order);
  else planners.delete(order.planner);
});
process.on('disconnect', () => process.exit());
// A terminal sends them to all processes; the parent says when it is over.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
