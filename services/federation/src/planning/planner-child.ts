import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { QueryPlan } from '@graphql-hive/router-query-planner';
import { PlanLimitError, type PlanQuestion, ProcessLostError } from '../execution/planner.ts';
import type { Order, Report } from './messages.ts';

/** Why a process is gone that was not ended. `limit`: a plan, or a graph, was beyond a limit. */
export type LossReason = 'limit' | 'lost';

/** A process with planners in it. */
export interface PlannerChild {
  readonly isOver: () => boolean;
  /** @throws Error for what is no supergraph, ProcessLostError. */
  load(planner: number, sdl: string): Promise<void>;
  /** @throws as `AskPlanner`. */
  plan(planner: number, question: PlanQuestion): Promise<QueryPlan>;
  drop(planner: number): void;
  end(): void;
}

const PROGRAM = fileURLToPath(new URL('./planner-process.ts', import.meta.url));
/** Of JavaScript, which hands on texts and plans; what planners need is not in it. */
const HEAP = ['--max-old-space-size=128', '--max-semi-space-size=2'];

/** 10,000 types take two seconds. */
const LOAD_LIMIT_MS = 60_000;

/** It gets nothing of the environment: it needs no secret. */
export function startPlannerChild(onLost: (reason: LossReason) => void): PlannerChild {
  const child: ChildProcess = fork(PROGRAM, { execArgv: HEAP, env: {}, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
  const loads = new Map<number, PromiseWithResolvers<undefined>>();
  const plans = new Map<number, PromiseWithResolvers<QueryPlan>>();
  let isOver = false;
  /** Undefined: it is ended from here. */
  let reason: LossReason | undefined = 'lost';
  let planCount = 0;

  child.on('message', (report: Report) => {
    if (report.kind === 'loaded') {
      const { planner, failure } = report;
      if (failure === undefined) loads.get(planner)?.resolve(undefined);
      else loads.get(planner)?.reject(new Error(failure));
      loads.delete(planner);
      return;
    }
    if (report.kind === 'planned') plans.get(report.plan)?.resolve(report.made);
    else {
      if (report.isBeyondLimit) reason = 'limit';
      plans.get(report.plan)?.reject(new (report.isBeyondLimit ? PlanLimitError : Error)(report.failure));
    }
    plans.delete(report.plan);
  });
  child.on('exit', lost);
  child.on('error', lost);

  function lost(): void {
    if (!isOver && reason !== undefined) onLost(reason);
    isOver = true;
    for (const waiting of [...loads.values(), ...plans.values()])
      waiting.reject(new ProcessLostError('The process of the planner has ended'));
    loads.clear();
    plans.clear();
  }

  function send(order: Order): void {
    // Where it has gone, `exit` says so.
    if (child.connected) child.send(order, () => undefined);
    else lost();
  }

  return {
    isOver: () => isOver,
    load(planner, sdl) {
      const loaded = Promise.withResolvers<undefined>();
      loads.set(planner, loaded);
      const limit = setTimeout(() => {
        reason = 'limit';
        child.kill('SIGKILL');
      }, LOAD_LIMIT_MS);
      send({ kind: 'load', planner, sdl });
      return loaded.promise.finally(() => clearTimeout(limit));
    },
    plan(planner, question) {
      const planned = Promise.withResolvers<QueryPlan>();
      planCount += 1;
      plans.set(planCount, planned);
      send({ kind: 'plan', planner, plan: planCount, question });
      return planned.promise;
    },
    drop: (planner) => send({ kind: 'drop', planner }),
    end() {
      reason = undefined;
      child.kill('SIGKILL');
    },
  };
}
