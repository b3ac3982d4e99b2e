import { errorMessage } from '@rollcall/platform/errors.ts';
import { type AskPlanner, createPlanner } from '../execution/planner.ts';
import type { Order, Report } from './messages.ts';

/** The program of a process of planners; see `createPlanners`. */

const planners = new Map<number, AskPlanner>();

/** A plan cannot be stopped: it takes its process with it. Usual ones take a millisecond. */
const PLAN_LIMIT_MS = 3000;
/** Beside what the planners have. The largest take some megabytes. */
const PLAN_LIMIT_BYTES = 512 * 1024 * 1024;
const LOOK_EVERY_MS = 50;

/** The numbers of plans that are being made, the oldest first, with how many looks there were before. */
const making = new Map<number, number>();
/** Counted instead of time, which goes on while this process cannot. */
let looks = 0;
/** Memory without plans. */
let restingBytes = 0;

/** None gets an answer once the parent has gone. */
function report(message: Report): void {
  process.send?.(message, undefined, undefined, () => undefined);
}

function load(planner: number, sdl: string): void {
  try {
    planners.set(planner, createPlanner(sdl));
    restingBytes = process.memoryUsage.rss();
    report({ kind: 'loaded', planner });
  } catch (error) {
    report({ kind: 'loaded', planner, failure: errorMessage(error) });
  }
}

async function plan({ planner, plan, question }: Extract<Order, { readonly kind: 'plan' }>): Promise<void> {
  if (making.size === 0) restingBytes = process.memoryUsage.rss();
  making.set(plan, looks);
  try {
    const ask = planners.get(planner);
    if (ask === undefined) throw new Error('There is no such planner');
    report({ kind: 'planned', plan, made: await ask(question) });
  } catch (error) {
    report({ kind: 'failed', plan, failure: errorMessage(error), isBeyondLimit: false });
  } finally {
    making.delete(plan);
  }
}

/** Ends the process where the oldest plan is beyond a limit. The others are made by the next one. */
function look(): void {
  looks += 1;
  const [oldest] = making;
  if (oldest === undefined) return;
  const [plan, before] = oldest;
  const isLong = (looks - before) * LOOK_EVERY_MS > PLAN_LIMIT_MS;
  if (!isLong && process.memoryUsage.rss() - restingBytes < PLAN_LIMIT_BYTES) return;
  const failure = isLong ? 'It takes too long' : 'It takes too much memory';
  process.send?.({ kind: 'failed', plan, failure, isBeyondLimit: true } satisfies Report, undefined, undefined, () =>
    // The addon is at work still.
    process.kill(process.pid, 'SIGKILL'),
  );
}
setInterval(look, LOOK_EVERY_MS);

process.on('message', (order: Order) => {
  if (order.kind === 'load') load(order.planner, order.sdl);
  else if (order.kind === 'plan') void plan(order);
  else planners.delete(order.planner);
});
process.on('disconnect', () => process.exit());
// A terminal sends them to all processes; the parent says when it is over.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
