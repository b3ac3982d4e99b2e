import type { QueryPlan } from '@graphql-hive/router-query-planner';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import { type AskPlanner, type PlanQuestion, ProcessLostError } from '../execution/planner.ts';
import { createHosts, type Hosts, type Place } from './hosts.ts';
import type { LossReason } from './planner-child.ts';

/** The planner of one supergraph. */
export interface Planner {
  readonly ask: AskPlanner;
  /** It is not in force any more: its memory is given back as soon as nobody waits for a plan. */
  close(): void;
}

/** Planners, in processes of their own (docs/decisions/0490). */
export interface Planners extends Actor {
  /** A supergraph of about so many characters is about to be loaded. */
  prepare(length: number): void;
  /** @throws Error for what is no supergraph, ProcessLostError for what ends the process. */
  load(sdl: string): Promise<Planner>;
  isStopped(): boolean;
}

/** @param onLost as of `createHosts`. */
export function createPlanners(onLost: (reason: LossReason) => void): Planners {
  const hosts = createHosts(onLost);
  return {
    name: 'planners',
    start: async () => {},
    stop: async () => hosts.stop(),
    prepare: (length) => hosts.prepare(length),
    isStopped: () => hosts.isStopped(),
    async load(sdl) {
      const planner = plannerOf(sdl, hosts);
      await planner.ready();
      return planner;
    },
  };
}

/** Loads it where it is not: for the first plan, after its process was lost, and where it was closed. */
function plannerOf(sdl: string, hosts: Hosts): Planner & { readonly ready: () => Promise<unknown> } {
  let placed: Promise<Place> | undefined;
  let waiting = 0;
  let isClosed = false;

  function place(isAlone = false): Promise<Place> {
    const placing = (placed ??= hosts.load(sdl, isAlone));
    placing.catch(() => unplace(placing));
    return placing;
  }

  function unplace(known: Promise<Place> | undefined): void {
    if (placed !== known) return;
    placed = undefined;
    known?.then(
      (place) => hosts.leave(place),
      () => undefined,
    );
  }

  async function askOnce(question: PlanQuestion): Promise<QueryPlan> {
    let known = place();
    if ((await known).host.child.isOver()) {
      unplace(known);
      known = place();
    }
    try {
      const { host, planner } = await known;
      return await host.child.plan(planner, question);
    } catch (error) {
      if (error instanceof ProcessLostError) unplace(known);
      throw error;
    }
  }

  return {
    async ready() {
      try {
        await place();
      } catch (error) {
        if (!(error instanceof ProcessLostError) || hosts.isStopped()) throw error;
        // Where it was this one that ended the process, it is not to end it for others again.
        unplace(placed);
        await place(true);
      }
    },
    async ask(question) {
      waiting += 1;
      try {
        return await askOnce(question);
      } catch (error) {
        // What another query did to the process is not the fault of this one.
        if (!(error instanceof ProcessLostError) || hosts.isStopped()) throw error;
        return await askOnce(question);
      } finally {
        waiting -= 1;
        if (isClosed && waiting === 0) unplace(placed);
      }
    },
    close() {
      isClosed = true;
      if (waiting === 0) unplace(placed);
    },
  };
}
