import type { Clock } from '@rollcall/platform/clock.ts';
import { backoffMs, sleep } from '@rollcall/platform/retry.ts';
import type { GraphStore, Known } from './ports.ts';
import { type Compose, settle } from './settling.ts';
import { afterNews, membersOf, type News, type Subgraph, type Subgraphs } from './subgraphs.ts';

export interface ChangesDeps {
  readonly store: GraphStore;
  readonly compose: Compose;
  readonly clock: Clock;
  /** Takes the graph in force, so that whoever made the change finds it. */
  readonly adopt: () => Promise<void>;
}

/** The only way in which what is known changes. */
export interface Changes {
  /** @returns what is known once the change is in force in this replica. @throws where the database is away. */
  make(news: readonly News[]): Promise<Known>;
}

const RETRY = { baseMs: 20, maxMs: 1000 };

/** One change after the other in this replica; by compare and set between replicas (docs/decisions/0465). */
export function createChanges({ store, compose, clock, adopt }: ChangesDeps): Changes {
  let last: Promise<unknown> = Promise.resolve();

  async function make(news: readonly News[]): Promise<Known> {
    for (let attempt = 0; ; attempt += 1) {
      const before = await store.load();
      const told = afterNews(before.subgraphs, news, clock.now());
      if (isSame(before.subgraphs, told)) return before;
      const isOfGraph = composedOf(told) !== composedOf(before.subgraphs);
      const { subgraphs, supergraph } = isOfGraph
        ? await settle(told, compose)
        : { subgraphs: told, supergraph: undefined };
      const position = await store.commit({ before, subgraphs, supergraph });
      if (position !== undefined) {
        await adopt();
        return { ...position, subgraphs };
      }
      await sleep(backoffMs(attempt, RETRY));
    }
  }

  return {
    make(news) {
      const turn = last.then(() => make(news));
      last = turn.catch(() => undefined);
      return turn;
    },
  };
}

function isSame(before: Subgraphs, after: Subgraphs): boolean {
  return before.size === after.size && [...after].every(([service, subgraph]) => before.get(service) === subgraph);
}

/** What composition depends on, as a text to compare. */
function composedOf(subgraphs: Subgraphs): string {
  return JSON.stringify(membersOf(subgraphs).map(facts));
}

function facts({ service, url, sdl, goodSdl, errors }: Subgraph): readonly unknown[] {
  return [service, url, sdl, goodSdl, errors];
}
