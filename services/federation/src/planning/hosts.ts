import { type PlannerChild, startPlannerChild } from './planner-child.ts';

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
  /** @throws Error for what is no supergraph, and where they are stopped; ProcessLostError. */
  load(sdl: string): Promise<Place>;
  leave(place: Place): void;
  isStopped(): boolean;
  stop(): void;
}

/**
 * A process loads schemas of so many characters altogether, then another one is begun: what a planner
 * has had is given back to the system by the end of its process alone.
 */
const LONGEST_SDL_PER_PROCESS = 256 * 1024;

export function createHosts(): Hosts {
  const hosts = new Set<Host>();
  let newest: Host | undefined;
  let count = 0;
  let isStopped = false;

  function hostFor(sdl: string): Host {
    if (isStopped) throw new Error('The planners are stopped');
    const before = newest;
    const hasRoom =
      before !== undefined && !before.child.isOver() && before.length + sdl.length <= LONGEST_SDL_PER_PROCESS;
    const host = hasRoom ? before : { child: startPlannerChild(), length: 0, planners: 0 };
    host.length += sdl.length;
    host.planners += 1;
    newest = host;
    hosts.add(host);
    if (before !== undefined) endIfUnused(before);
    return host;
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
    async load(sdl) {
      const host = hostFor(sdl);
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
