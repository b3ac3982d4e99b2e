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
  let count = 0;
  let isStopped = false;

  function begin(): Host {
    const host = { child: startPlannerChild(onLost), length: 0, planners: 0 };
    hosts.add(host);
    return host;
  }

  function shared(sdl: string): Host {
    const before = newest;
    const hasRoom =
      before !== undefined && !before.child.isOver() && before.length + sdl.length <= LONGEST_SDL_PER_PROCESS;
    if (hasRoom) return before;
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
      for (const { child } of hosts) child.end();
    },
  };
}
