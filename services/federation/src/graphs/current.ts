import { errorMessage } from '@rollcall/platform/errors.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { Gauge, type Registry } from 'prom-client';
import type { Generation, GraphStore } from '../domain/ports.ts';
import type { SubgraphStatus } from '../domain/subgraphs.ts';
import type { GraphFile } from './graph-file.ts';

/** What answers queries until another is in force, and goes on for who holds it. */
interface Closable {
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

/** Between looks at what other replicas have changed. */
const LOOK_MS = 500;

/** Follows the generation in the database (docs/decisions/0465). */
export function createCurrent<Graph extends Closable>(deps: CurrentDeps<Graph>): Current<Graph> {
  const { store, build, file, onSwap, log, metrics } = deps;
  const stopping = new AbortController();
  let inForce: InForce<Graph> | undefined;
  let statuses: ReadonlyMap<string, SubgraphStatus> = new Map();
  let seen = { revision: -1, generation: -1 };
  let last: Promise<unknown> = Promise.resolve();
  let running: Promise<void> | undefined;
  let isAway = false;
  observe(metrics, { generation: () => seen.generation, statuses: () => statuses });

  async function look(): Promise<void> {
    const position = await store.position();
    if (position.generation !== seen.generation) {
      const generation = await store.generation();
      await swap(generation);
      if (inForce !== undefined && inForce.number === generation?.number) await file?.write(generation);
    }
    if (position.revision !== seen.revision) statuses = await store.statuses();
    seen = position;
  }

  async function swap(generation: Generation | undefined): Promise<void> {
    if (generation === undefined || generation.supergraph === '') {
      replace(undefined);
      return;
    }
    const { number, hash, supergraph } = generation;
    try {
      replace({ number, hash, graph: await build(supergraph) });
      log.info({ generation: number }, 'another graph is in force');
    } catch (err) {
      // It composes, and cannot be planned for: the one before still can.
      log.error({ err, generation: number }, 'the graph cannot be used');
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
