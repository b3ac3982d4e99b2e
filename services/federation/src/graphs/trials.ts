import { hash } from 'node:crypto';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { LIMIT_CODE, storableErrors } from '../composition/compose.ts';
import { LimitError } from '../composition/composer.ts';
import type { Compose } from '../domain/settling.ts';
import { ProcessLostError } from '../execution/planner.ts';
import type { Closable } from './current.ts';

export interface TrialsDeps<Graph extends Closable> {
  readonly compose: Compose;
  /** @throws where the supergraph is none that it can use. */
  readonly build: (supergraph: string) => Promise<Graph>;
  /** Whether nothing can be built any more, whatever it is. */
  readonly isStopped: () => boolean;
}

/** Sees whether what composes can be used, before it counts (docs/decisions/0509). */
export interface Trials<Graph> {
  /** What cannot be built does not compose either. */
  readonly compose: Compose;
  /** As of {@link TrialsDeps}; what was built to see whether it can be is not built again. */
  readonly build: (supergraph: string) => Promise<Graph>;
}

/** Of a graph that is not put in force meanwhile. */
const KEPT_MS = 10_000;

export function createTrials<Graph extends Closable>(deps: TrialsDeps<Graph>): Trials<Graph> {
  const { compose, build, isStopped } = deps;
  let kept: { readonly supergraph: string; readonly graph: Graph; readonly timer: NodeJS.Timeout } | undefined;
  /** Hash of the last one that could be used. */
  let usable: string | undefined;

  function keep(supergraph: string, graph: Graph): void {
    drop();
    kept = { supergraph, graph, timer: setTimeout(drop, KEPT_MS).unref() };
  }

  function drop(): void {
    clearTimeout(kept?.timer);
    kept?.graph.close();
    kept = undefined;
  }

  return {
    async compose(subgraphs) {
      const composition = await compose(subgraphs);
      if (composition.errors !== undefined) return composition;
      const { supergraph } = composition;
      const digest = hash('sha256', supergraph);
      if (digest === usable) return composition;
      try {
        keep(supergraph, await build(supergraph));
      } catch (error) {
        if (isStopped()) throw error;
        return { errors: storableErrors([{ code: codeOf(error), message: `No graph of it: ${errorMessage(error)}` }]) };
      }
      usable = digest;
      return composition;
    },
    async build(supergraph) {
      if (kept?.supergraph !== supergraph) return build(supergraph);
      const { graph, timer } = kept;
      clearTimeout(timer);
      kept = undefined;
      return graph;
    },
  };
}

/** What took a thread or a process with it would again. */
function codeOf(error: unknown): string {
  return error instanceof LimitError || error instanceof ProcessLostError ? LIMIT_CODE : 'GRAPH_UNUSABLE';
}
