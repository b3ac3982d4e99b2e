import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '@rollcall/platform/clock.ts';
import { ServiceError } from '@rollcall/platform/errors.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import type { Registry } from 'prom-client';
import type { Graph, PlannedSubscription } from '../execution/graph.ts';
import type { GraphError } from '../execution/types.ts';
import { Feed, type Listener, type SubscribedOperation } from './feed.ts';
import { createSubscriptionMetrics } from './subscription-metrics.ts';

export interface FeedsDeps<Context> {
  /** The graph in force, or what a contract shows of it; undefined: none. */
  readonly graph: (contract: string | undefined) => Graph<Context> | undefined;
  /** For one event, in milliseconds. */
  readonly deadlineMs: number;
  /** Those that another graph ends do so over this time; 5 s when absent. */
  readonly endingMs?: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Registry;
}

/** A subscription that is to begin. */
interface Joining<Context> {
  /** Equal ones of one caller have the same; undefined: nobody else may listen to it. */
  readonly key: string | undefined;
  readonly operation: SubscribedOperation;
  readonly planned: PlannedSubscription<Context>;
}

/** All subscriptions of this replica. */
export interface Feeds<Context> {
  /** @returns what lets the listener leave. */
  join(joining: Joining<Context>, listener: Listener<Context>): () => void;
  /** To be called when another graph is in force. */
  followGraph(): Promise<void>;
}

/** Clients that subscribe again do not all come at once. */
const ENDING_MS = 5000;
/** So many are planned anew before others have their turn. */
const AT_A_TIME = 50;
/** A planner that was lost is soon there again. */
const RETRY_MS = 500;
const MOST_TRIES = 10;
const CHANGED: GraphError = {
  message: 'The graph has changed so that the subscription cannot go on; subscribe again',
  extensions: { code: 'GRAPH_CHANGED' },
};

/** Subscriptions at subgraphs, shared by those of one caller that ask for the same (docs/decisions/0486). */
export function createFeeds<Context>(deps: FeedsDeps<Context>): Feeds<Context> {
  const { graph, deadlineMs, endingMs = ENDING_MS, clock, log, metrics } = deps;
  /** With their keys. */
  const feeds = new Map<Feed<Context>, string | undefined>();
  /** Those that somebody may join. */
  const byKey = new Map<string, Feed<Context>>();
  const ending = new Set<Feed<Context>>();
  const isKnown = (service: string) => graph(undefined)?.subgraphs.has(service) === true;
  const observed = createSubscriptionMetrics({ metrics, clock, isKnown, open: () => feeds.size });

  function begin({ key, operation, planned }: Joining<Context>): Feed<Context> {
    const service = planned.source.subgraph;
    const feed: Feed<Context> = new Feed({
      operation,
      planned,
      deadlineMs,
      log,
      onEvent: () => observed.event(service),
      onEnd(reason) {
        remove(feed);
        observed.ended(service, reason);
      },
    });
    feeds.set(feed, key);
    if (key !== undefined) byKey.set(key, feed);
    return feed;
  }

  function remove(feed: Feed<Context>): void {
    close(feed);
    feeds.delete(feed);
    ending.delete(feed);
  }

  /** Nobody joins it any more. */
  function close(feed: Feed<Context>): void {
    const key = feeds.get(feed);
    if (key !== undefined && byKey.get(key) === feed) byKey.delete(key);
  }

  function endSoon(feed: Feed<Context>): void {
    if (!feeds.has(feed) || ending.has(feed)) return;
    close(feed);
    ending.add(feed);
    setTimeout(() => feed.end('changed', [CHANGED]), Math.random() * endingMs).unref();
  }

  /** @returns those that cannot be planned now, but may be later. */
  async function follow(all: readonly Feed<Context>[]): Promise<Feed<Context>[]> {
    const later: Feed<Context>[] = [];
    for (const [index, feed] of all.entries()) {
      if (index % AT_A_TIME === AT_A_TIME - 1) await nextTurn();
      if (!feeds.has(feed) || ending.has(feed)) continue;
      const { contract } = feed.operation;
      const next = graph(contract);
      const planned = await planBy(next, feed.operation);
      // Who hears of the one after it looks at all again.
      if (graph(contract) !== next) return [];
      const goesOn = planned !== undefined && planned !== 'later' && feed.goOnBy(planned);
      if (planned === 'later') later.push(feed);
      else if (!goesOn) endSoon(feed);
    }
    return later;
  }

  return {
    join(joining, listener) {
      const known = joining.key === undefined ? undefined : byKey.get(joining.key);
      return (known ?? begin(joining)).add(listener);
    },
    async followGraph() {
      let left = [...feeds.keys()];
      for (let tries = 1; left.length > 0 && tries <= MOST_TRIES; tries += 1) {
        if (tries > 1) await sleep(RETRY_MS, undefined, { ref: false });
        left = await follow(left);
      }
      for (const feed of left) endSoon(feed);
    },
  };
}

/** @returns undefined where the graph has it no more; 'later' where that is not known now. */
async function planBy<Context>(
  graph: Graph<Context> | undefined,
  operation: SubscribedOperation,
): Promise<PlannedSubscription<Context> | 'later' | undefined> {
  try {
    const planned = await graph?.subscription(operation);
    return planned !== undefined && 'source' in planned ? planned : undefined;
  } catch (error) {
    return error instanceof ServiceError && error.code === 'UNAVAILABLE' ? 'later' : undefined;
  }
}
