import { type LossReason, type PlannerChild, startPlannerChild } from './planner-child.ts';

/** A planner that is loaded. */
export interface Place {
  readonly host: Host;
  /** Its number there. */
  readonly planner: number;
}

/** A process, and what it has loaded. */
interface Host {
  readonly child: PlannerChild;
  /** Characters of SDL that it has ever loaded. */
  length: number;
  /** Planners that are in use. */
  planners: number;
}

/** Processes for planners. */
export interface Hosts {
  /** An SDL of about so many characters is about to be loaded: where it needs a process, that is started. */
  prepare(length: number): void;
  /**
   * @param isAlone whether it gets a process to itself.
   * @throws Error for what is no supergraph, and where they are stopped; ProcessLostError.
   */
  load(sdl: string, isAlone?: boolean): Promise<Place>;
  leave(place: Place): void;
  isStopped(): boolean;
  stop(): void;
}

/**
 * A process loads schemas of so many characters altogether, then another one is begun: what a planner
 * has had is given back to the system by the end of its process alone.
 */
const LONGEST_SDL_PER_PROCESS = 256 * 1024;

/** @param onLost called once a process is gone that was not ended from here. */
export function createHosts(onLost: (reason: LossReason) => void): Hosts {
  const hosts = new Set<Host>();
  let newest: Host | undefined;
  /** Started, and not in use yet. */
  let spare: PlannerChild | undefined;
  let count = 0;
  let isStopped = false;

  function begin(): Host {
    const child = spare === undefined || spare.isOver() ? startPlannerChild(onLost) : spare;
    const host = { child, length: 0, planners: 0 };
    spare = undefined;
    hosts.add(host);
    return host;
  }

  function hasRoom({ child, length: before }: Host, length: number): boolean {
    return !child.isOver() && before + length <= LONGEST_SDL_PER_PROCESS;
  }

  function shared(sdl: string): Host {
    const before = newest;
    if (before !== undefined && hasRoom(before, sdl.length)) return before;
    newest = begin();
    if (before !== undefined) endIfUnused(before);
    return newest;
  }

  function endIfUnused(host: Host): void {
    if (host === newest || host.planners > 0) return;
    host.child.end();
    hosts.delete(host);
  }

  function leave({ host, planner }: Place): void {
    host.child.drop(planner);
    host.planners -= 1;
    endIfUnused(host);
  }

  return {
    prepare(length) {
      if (isStopped || (newest !== undefined && hasRoom(newest, length))) return;
      if (spare === undefined || spare.isOver()) spare = startPlannerChild(onLost);
    },
    async load(sdl, isAlone = false) {
      if (isStopped) throw new Error('The planners are stopped');
      const host = isAlone ? begin() : shared(sdl);
      host.length += sdl.length;
      host.planners += 1;
      count += 1;
      const place = { host, planner: count };
      try {
        await host.child.load(place.planner, sdl);
        return place;
      } catch (error) {
        leave(place);
        throw error;
      }
    },
    leave,
    isStopped: () => isStopped,
    stop() {
      isStopped = true;
      spare?.end();
      for (const { child } of hosts) child.end();
    },
  };
}
