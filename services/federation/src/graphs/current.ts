import type { Clock } from '@rollcall/platform/clock.ts';
import { errorMessage } from '@rollcall/platform/errors.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { backoffMs, sleep } from '@rollcall/platform/retry.ts';
import { Gauge, type Registry } from 'prom-client';
import type { Generation, GraphStore } from '../domain/ports.ts';
import type { SubgraphStatus } from '../domain/subgraphs.ts';
import type { GraphFile } from './graph-file.ts';

/** What answers queries until another is in force, and goes on for who holds it. */
export interface Closable {
  /** Another is in force. */
  close(): void;
}

export interface CurrentDeps<Graph extends Closable> {
  readonly store: Pick<GraphStore, 'position' | 'generation' | 'statuses'>;
  /** Builds what answers queries. @throws where the supergraph is none that it can use. */
  readonly build: (supergraph: string) => Promise<Graph>;
  /** Undefined: a replica that starts while the database is away has no graph. */
  readonly file: GraphFile | undefined;
  /** Called once another graph is in force, or none. */
  readonly onSwap: () => void;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Registry;
}

/** A graph in force, with what answers queries. */
export interface InForce<Graph> extends Omit<Generation, 'supergraph'> {
  readonly graph: Graph;
}

/** The graph in force in this replica: read from memory, kept when the database is away. */
export interface Current<Graph> extends Actor {
  /** Undefined: no service is in it. Who holds one goes on with it when another is in force. */
  readonly graph: () => InForce<Graph> | undefined;
  /** How each known service stands, as of the last look. */
  readonly statuses: () => ReadonlyMap<string, SubgraphStatus>;
  /** Takes what is in force now. @throws where the database is away. */
  readonly adopt: () => Promise<void>;
}

/** Of a graph that could not be built. */
const AGAIN = { baseMs: 1000, maxMs: 300_000 };
/** Between looks at what other replicas have changed. */
const LOOK_MS = 500;

/** Follows the generation in the database (docs/decisions/0465). */
export function createCurrent<Graph extends Closable>(deps: CurrentDeps<Graph>): Current<Graph> {
  const { store, build, file, onSwap, clock, log, metrics } = deps;
  const stopping = new AbortController();
  let inForce: InForce<Graph> | undefined;
  let statuses: ReadonlyMap<string, SubgraphStatus> = new Map();
  let seen = { revision: -1, generation: -1 };
  let last: Promise<unknown> = Promise.resolve();
  let running: Promise<void> | undefined;
  let isAway = false;
  const failed = createFailed(clock);
  observe(metrics, { generation: () => seen.generation, statuses: () => statuses });

  async function look(): Promise<void> {
    const position = await store.position();
    if (position.revision !== seen.revision) statuses = await store.statuses();
    const isNew = position.generation !== seen.generation && failed.isDue(position.generation);
    const isTaken = isNew && (await take(position.generation));
    seen = { revision: position.revision, generation: isTaken ? position.generation : seen.generation };
  }

  /** @returns false where it cannot be used, for now. */
  async function take(number: number): Promise<boolean> {
    const generation = await store.generation();
    if (generation === undefined && number > 0) throw new Error(`The graph ${number} is not there`);
    const isTaken = await swap(generation);
    if (!isTaken) failed.note(number);
    else if (generation !== undefined) await file?.write(generation);
    return isTaken;
  }

  async function swap(generation: Generation | undefined): Promise<boolean> {
    if (generation === undefined || generation.supergraph === '') {
      replace(undefined);
      return true;
    }
    const { number, hash, supergraph } = generation;
    try {
      replace({ number, hash, graph: await build(supergraph) });
      log.info({ generation: number }, 'another graph is in force');
      return true;
    } catch (err) {
      // It composes, and cannot be planned for: the one before still can.
      log.error({ err, generation: number }, 'the graph cannot be used');
      return false;
    }
  }

  function replace(next: InForce<Graph> | undefined): void {
    inForce?.graph.close();
    inForce = next;
    onSwap();
  }

  function adopt(): Promise<void> {
    const turn = last.then(look);
    last = turn.catch(() => undefined);
    return turn;
  }

  async function follow(): Promise<void> {
    while (await sleep(LOOK_MS, stopping.signal)) await lookAgain();
  }

  async function lookAgain(): Promise<void> {
    try {
      await adopt();
      isAway = false;
    } catch (error) {
      if (!isAway) log.warn({ message: errorMessage(error) }, 'the graph in force cannot be read');
      isAway = true;
    }
  }

  return {
    name: 'graph',
    async start() {
      await lookAgain();
      // Until the database is back.
      if (isAway) await swap(await file?.read());
      running = follow();
    },
    async stop() {
      stopping.abort();
      await running;
    },
    graph: () => inForce,
    statuses: () => statuses,
    adopt,
  };
}

/** A graph that could not be built may be a fault of the moment: a process that was lost, a limit on a busy machine. */
function createFailed(clock: Clock) {
  let last = { generation: -1, times: 0, againAtMs: 0 };
  return {
    isDue: (generation: number): boolean => generation !== last.generation || clock.monotonicMs() >= last.againAtMs,
    note(generation: number): void {
      const times = generation === last.generation ? last.times + 1 : 0;
      last = { generation, times, againAtMs: clock.monotonicMs() + backoffMs(times, AGAIN) };
    },
  };
}

interface Observed {
  readonly generation: () => number;
  readonly statuses: () => ReadonlyMap<string, SubgraphStatus>;
}

function observe(metrics: Registry, { generation, statuses }: Observed): void {
  void new Gauge({
    name: 'rollcall_federation_generation',
    help: 'Number of the graph in force in this replica.',
    registers: [metrics],
    collect() {
      this.set(Math.max(generation(), 0));
    },
  });
  void new Gauge({
    name: 'rollcall_federation_subgraphs',
    help: 'Known services with GraphQL by how they stand with the graph.',
    labelNames: ['status'],
    registers: [metrics],
    collect() {
      const counts = { composed: 0, held: 0, unreachable: 0, stale: 0 };
      for (const status of statuses().values()) counts[status] += 1;
      for (const [status, count] of Object.entries(counts)) this.set({ status }, count);
    },
  });
}
